// SPDX-License-Identifier: Apache-2.0
// torch.distributed's backend "dynamiccl": each operation as plain NCCL calls on host memory. A client of
// NCCL's C API like any other, so that whatever is loaded at that border sees PyTorch's own traffic.
//
// A group has one communicator; its calls run one after another in the order of issue, beside the caller.
// Calls that are done when NCCL returns are complete at once. Send and receive outside a coalescing block
// have a communicator for each pair of ranks, as in PyTorch's NCCL backend: a message that nobody receives
// yet holds up nothing but its pair.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "zero_workloads/torch_backend/deadline_watch.h"
#include "zero_workloads/torch_backend/pair_channel.h"

namespace dynamiccl::torch_backend {

class HostBackend final : public c10d::Backend {
 public:
  struct Membership {
    int rank = 0;
    int size = 1;
    std::string group_name;
    std::vector<uint64_t> global_ranks;
    std::chrono::milliseconds timeout = kBackendDefaultTimeout;
  };
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkHandle = c10::intrusive_ptr<c10d::Work>;

  // Collective over the group: returns when all have joined.
  HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership);
  ~HostBackend() override;

  const std::string getBackendName() const override { return "dynamiccl"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  void setSequenceNumberForGroup() override {}  // starts at 0 on every rank
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& opts) override;

  void startCoalescing() override;
  WorkHandle endCoalescing() override;

  // collectives.cc: one tensor in, one out.
  WorkHandle broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkHandle allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkHandle allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override;
  WorkHandle reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkHandle _allgather_base(at::Tensor& output, at::Tensor& input,
                             const c10d::AllgatherOptions& opts) override;
  WorkHandle allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& opts) override;
  WorkHandle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& opts) override;
  WorkHandle reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& opts) override;
  WorkHandle barrier(const c10d::BarrierOptions& opts) override;

  // tensor_lists.cc: a tensor for each rank.
  WorkHandle allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override;
  WorkHandle reduce_scatter(Tensors& outputs, TensorLists& inputs,
                            const c10d::ReduceScatterOptions& opts) override;
  WorkHandle gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  WorkHandle scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) override;
  WorkHandle alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                           std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& opts) override;
  WorkHandle alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;

  // point_to_point.cc
  WorkHandle send(Tensors& tensors, int destination, int tag) override;
  WorkHandle recv(Tensors& tensors, int source, int tag) override;

 private:
  struct Call {
    const char* operation;
    c10d::OpType type;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    PendingWork::Content content = {};
  };
  // What is issued between startCoalescing and endCoalescing: one NCCL group, one work.
  struct Coalescing {
    c10::intrusive_ptr<PendingWork> work;  // of the first call
  };
  using NcclCalls = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;

  // Issues `calls`, as one group where they are several, on the group's communicator.
  WorkHandle Issue(Call call, bool several, const NcclCalls& calls);
  WorkHandle IssueOn(const std::shared_ptr<Communicator>& communicator, Call call, bool several,
                     const NcclCalls& calls);
  static void IssueToNccl(Communicator& communicator, const char* operation, bool several,
                          const NcclCalls& calls);
  c10::intrusive_ptr<PendingWork> NewWork(Call call);
  // Throws for a rank that the group does not have.
  void CheckRank(const char* operation, const char* name, int64_t rank) const;
  WorkHandle Message(Call call, int peer, const std::function<NcclCalls(int peer)>& calls);
  HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership,
              std::shared_ptr<Communicator> communicator);

  const c10::intrusive_ptr<c10d::Store> store_;
  const c10::intrusive_ptr<Options> options_;
  std::mutex mutex_;  // NCCL calls and their works in one order; not held while peers are awaited
  std::shared_ptr<Communicator> communicator_;  // shared with the works in flight
  std::map<int, std::unique_ptr<PairChannel>> pairs_;
  std::optional<Coalescing> coalescing_;
  std::atomic<uint64_t> sequence_{0};
  DeadlineWatch watch_;
};

}  // namespace dynamiccl::torch_backend
