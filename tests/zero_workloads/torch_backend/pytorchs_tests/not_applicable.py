# SPDX-License-Identifier: Apache-2.0
"""Tests of distributed_test.py that do not apply to the backend, by reason. run.py fails if one of them passes."""

NOT_APPLICABLE = {
    "NCCL matches messages by their order: it has no tags": [
        "test_batch_isend_irecv_gloo_tags", "test_send_recv_with_tag", "test_send_recv_with_tag_autograd_profiler",
        "test_send_recv_with_tag_torch_profiler"],
    "NCCL receives from a named rank only": [
        "test_send_recv_any_source", "test_send_recv_any_source_autograd_profiler", "test_send_recv_any_source_torch_profiler"],
    "PyTorch offers monitored_barrier for gloo only": [
        "test_monitored_barrier_failure_order", "test_monitored_barrier_gloo", "test_monitored_barrier_gloo_rank_0_timeout",
        "test_monitored_barrier_gloo_subgroup", "test_monitored_barrier_wait_all_ranks"],
    "NCCL has no sparse tensors": ["test_sparse_all_reduce_sum", "test_sparse_all_reduce_sum_cuda"],
    "DDP's log calls the backend of every plugin \"custom\"": ["test_ddp_logging_data_cpu"],
}
