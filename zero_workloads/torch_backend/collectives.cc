// SPDX-License-Identifier: Apache-2.0
// The operations of torch.distributed that consist of one NCCL collective for each tensor.
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "zero_workloads/torch_backend/host_backend.h"
#include "zero_workloads/torch_backend/nccl_operands.h"

namespace dynamiccl::torch_backend {
namespace {

ncclResult_t AllReduce(const char* operation, const at::Tensor& tensor, const c10d::ReduceOp& op,
                       ncclComm_t communicator, cudaStream_t stream) {
  const NcclElements elements = ReducedElements(operation, tensor);
  const ReduceOperator with(operation, op, tensor, communicator);
  return ncclAllReduce(elements.data, elements.data, elements.count, elements.type, with.get(), communicator,
                       stream);
}

ncclResult_t AllGather(const at::Tensor& output, const at::Tensor& input, ncclComm_t communicator,
                       cudaStream_t stream) {
  const NcclElements sent = MovedElements(input);
  return ncclAllGather(sent.data, output.data_ptr(), sent.count, sent.type, communicator, stream);
}

ncclResult_t ReduceScatter(const char* operation, const at::Tensor& output, const at::Tensor& input,
                           const c10d::ReduceOp& op, ncclComm_t communicator, cudaStream_t stream) {
  const NcclElements received = ReducedElements(operation, output);
  const ReduceOperator with(operation, op, output, communicator);
  return ncclReduceScatter(input.data_ptr(), received.data, received.count, received.type, with.get(),
                           communicator, stream);
}

// Throws unless `whole` has as many bytes as `size` tensors like `part`.
void CheckWhole(const char* operation, const at::Tensor& whole, const at::Tensor& part, int size) {
  CheckContiguous(operation, {whole, part}, part);
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, operation, ": ", whole.numel(),
                    " elements are not ", part.numel(), " from each of ", size, " ranks");
}

void CheckWholes(const char* operation, const std::vector<at::Tensor>& wholes,
                 const std::vector<at::Tensor>& parts, int size) {
  TORCH_CHECK_VALUE(!parts.empty() && wholes.size() == parts.size(), operation, ": ", parts.size(),
                    " tensors of one rank and ", wholes.size(), " of all ranks");
  for (size_t i = 0; i < parts.size(); ++i) CheckWhole(operation, wholes[i], parts[i], size);
}

// Rejects an unsupported type or operator before anything is issued. The other ranks reject it as well, so no
// NCCL group stays incomplete.
void CheckReduction(const char* operation, const at::Tensor& tensor, const c10d::ReduceOp& op,
                    Communicator& on) {
  ReducedElements(operation, tensor);
  const ReduceOperator probe(operation, op, tensor, on.handle());
}

}  // namespace

HostBackend::WorkHandle HostBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& tensor = OnlyTensor("broadcast", tensors);
  CheckDense("broadcast", tensor);
  CheckRank("broadcast", "source rank", opts.rootRank);
  const NcclElements elements = MovedElements(tensor);
  return Issue({"broadcast", c10d::OpType::BROADCAST, opts.timeout, {{tensor}, {tensor}}}, false,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 return ncclBroadcast(elements.data, elements.data, elements.count, elements.type,
                                      static_cast<int>(opts.rootRank), communicator, stream);
               });
}

HostBackend::WorkHandle HostBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& tensor = OnlyTensor("all_reduce", tensors);
  CheckDense("all_reduce", tensor);
  CheckReduction("all_reduce", tensor, opts.reduceOp, *communicator_);
  return Issue({"all_reduce", c10d::OpType::ALLREDUCE, opts.timeout, {{tensor}, {tensor}}}, false,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 return AllReduce("all_reduce", tensor, opts.reduceOp, communicator, stream);
               });
}

HostBackend::WorkHandle HostBackend::allreduce_coalesced(Tensors& tensors,
                                                         const c10d::AllreduceCoalescedOptions& opts) {
  const BlockGuard guard(*this);
  TORCH_CHECK_VALUE(!tensors.empty(), "all_reduce_coalesced: the list of tensors is empty");
  for (const at::Tensor& tensor : tensors) {
    CheckDense("all_reduce_coalesced", tensor);
    CheckReduction("all_reduce_coalesced", tensor, opts.reduceOp, *communicator_);
  }
  return Issue({"all_reduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED, opts.timeout, {tensors, tensors}},
               true, [&](ncclComm_t communicator, cudaStream_t stream) {
                 ncclResult_t result = ncclSuccess;
                 for (size_t i = 0; i < tensors.size() && result == ncclSuccess; ++i)
                   result =
                       AllReduce("all_reduce_coalesced", tensors[i], opts.reduceOp, communicator, stream);
                 return result;
               });
}

HostBackend::WorkHandle HostBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& tensor = OnlyTensor("reduce", tensors);
  CheckDense("reduce", tensor);
  CheckRank("reduce", "destination rank", opts.rootRank);
  const NcclElements elements = ReducedElements("reduce", tensor);
  CheckReduction("reduce", tensor, opts.reduceOp, *communicator_);
  return Issue({"reduce", c10d::OpType::REDUCE, opts.timeout, {{tensor}, {tensor}}}, false,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 const ReduceOperator with("reduce", opts.reduceOp, tensor, communicator);
                 return ncclReduce(elements.data, elements.data, elements.count, elements.type, with.get(),
                                   static_cast<int>(opts.rootRank), communicator, stream);
               });
}

HostBackend::WorkHandle HostBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                     const c10d::AllgatherOptions& opts) {
  const BlockGuard guard(*this);
  CheckWhole("all_gather_single", output, input, getSize());
  return Issue({"all_gather_single", c10d::OpType::_ALLGATHER_BASE, opts.timeout, {{input}, {output}}}, false,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 return AllGather(output, input, communicator, stream);
               });
}

HostBackend::WorkHandle HostBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                     const c10d::AllgatherOptions& opts) {
  const BlockGuard guard(*this);
  CheckWholes("all_gather_single_coalesced", outputs, inputs, getSize());
  return Issue({"all_gather_single_coalesced", c10d::OpType::COALESCED, opts.timeout, {inputs, outputs}},
               true, [&](ncclComm_t communicator, cudaStream_t stream) {
                 ncclResult_t result = ncclSuccess;
                 for (size_t i = 0; i < inputs.size() && result == ncclSuccess; ++i)
                   result = AllGather(outputs[i], inputs[i], communicator, stream);
                 return result;
               });
}

HostBackend::WorkHandle HostBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                          const c10d::ReduceScatterOptions& opts) {
  const BlockGuard guard(*this);
  CheckWhole("reduce_scatter_single", input, output, getSize());
  CheckReduction("reduce_scatter_single", output, opts.reduceOp, *communicator_);
  return Issue(
      {"reduce_scatter_single", c10d::OpType::_REDUCE_SCATTER_BASE, opts.timeout, {{input}, {output}}}, false,
      [&](ncclComm_t communicator, cudaStream_t stream) {
        return ReduceScatter("reduce_scatter_single", output, input, opts.reduceOp, communicator, stream);
      });
}

HostBackend::WorkHandle HostBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                     const c10d::ReduceScatterOptions& opts) {
  const BlockGuard guard(*this);
  constexpr const char* kOperation = "reduce_scatter_single_coalesced";
  CheckWholes(kOperation, inputs, outputs, getSize());
  for (const at::Tensor& output : outputs) CheckReduction(kOperation, output, opts.reduceOp, *communicator_);
  return Issue({kOperation, c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED, opts.timeout, {inputs, outputs}},
               true, [&](ncclComm_t communicator, cudaStream_t stream) {
                 ncclResult_t result = ncclSuccess;
                 for (size_t i = 0; i < inputs.size() && result == ncclSuccess; ++i) {
                   result =
                       ReduceScatter(kOperation, outputs[i], inputs[i], opts.reduceOp, communicator, stream);
                 }
                 return result;
               });
}

// The barrier is an AllReduce of one float, as in PyTorch's NCCL backend.
HostBackend::WorkHandle HostBackend::barrier(const c10d::BarrierOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor token = at::zeros({1}, at::kFloat);
  return Issue({"barrier", c10d::OpType::BARRIER, opts.timeout, {{token}, {}}}, false,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 return ncclAllReduce(token.data_ptr(), token.data_ptr(), 1, ncclFloat32, ncclSum,
                                      communicator, stream);
               });
}

}  // namespace dynamiccl::torch_backend
