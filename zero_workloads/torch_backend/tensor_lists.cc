// SPDX-License-Identifier: Apache-2.0
// The operations with a tensor for each rank. If all tensors have one size, gathering and reducing go through
// one flat tensor and one NCCL collective, as in PyTorch's NCCL backend. Otherwise the operation is an NCCL
// group with one call for each rank.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "zero_workloads/torch_backend/host_backend.h"
#include "zero_workloads/torch_backend/nccl_operands.h"

namespace dynamiccl::torch_backend {
namespace {

using Tensors = std::vector<at::Tensor>;

// Returns the only list of `lists`. This list must have one contiguous tensor, of the type of `like`, for
// each of `size` ranks. Otherwise the function throws.
const Tensors& ForEachRank(const char* operation, const std::vector<Tensors>& lists, int size,
                           const at::Tensor& like) {
  TORCH_CHECK_VALUE(lists.size() == 1, operation, ": takes one list a process, got ", lists.size());
  TORCH_CHECK_VALUE(lists[0].size() == static_cast<size_t>(size), operation, ": a list of ", lists[0].size(),
                    " tensors for ", size, " ranks");
  CheckContiguous(operation, lists[0], like);
  return lists[0];
}

bool OneSize(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.numel() == tensors[0].numel(); });
}

void CheckSameCount(const char* operation, const at::Tensor& own, const at::Tensor& in_list) {
  TORCH_CHECK_VALUE(own.numel() == in_list.numel(), operation, ": this rank's tensor has ", own.numel(),
                    " elements, its place in the list ", in_list.numel());
}

// Returns the tensors of all lists, one list after another. There must be one list for each of `size` ranks.
// Each list must have one contiguous tensor for each input, of the same size as the input. Otherwise the
// function throws.
Tensors ForEachInput(const char* operation, const std::vector<Tensors>& lists, const Tensors& inputs,
                     int size) {
  TORCH_CHECK_VALUE(lists.size() == static_cast<size_t>(size), operation, ": ", lists.size(), " lists for ",
                    size, " ranks");
  CheckContiguous(operation, inputs, inputs[0]);
  Tensors all;
  for (const Tensors& list : lists) {
    TORCH_CHECK_VALUE(list.size() == inputs.size(), operation, ": a list of ", list.size(), " tensors for ",
                      inputs.size(), " inputs");
    CheckContiguous(operation, list, inputs[0]);
    for (size_t i = 0; i < list.size(); ++i) CheckSameCount(operation, inputs[i], list[i]);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

at::Tensor FlatFor(const Tensors& tensors) {
  return at::empty({static_cast<int64_t>(tensors.size()) * tensors[0].numel()}, tensors[0].options());
}

// Copies the parts of the flat tensor to the tensors. The function uses plain copies of memory, because the
// stream's thread must not use autograd.
void CopyOut(const at::Tensor& flat, const Tensors& tensors) {
  const auto* from = static_cast<const std::byte*>(flat.const_data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.nbytes() > 0) std::memcpy(tensor.data_ptr(), from, tensor.nbytes());
    from += tensor.nbytes();
  }
}

void CopyIn(const Tensors& tensors, const at::Tensor& flat) {
  auto* to = static_cast<std::byte*>(flat.data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.nbytes() > 0) std::memcpy(to, tensor.const_data_ptr(), tensor.nbytes());
    to += tensor.nbytes();
  }
}

// Runs `call` for one rank after another. Stops when NCCL refuses a call.
template <typename CallForRank>
ncclResult_t ForRanks(int size, CallForRank call) {
  ncclResult_t result = ncclSuccess;
  for (int rank = 0; rank < size && result == ncclSuccess; ++rank) result = call(rank);
  return result;
}

ncclResult_t Send(const at::Tensor& tensor, int peer, ncclComm_t communicator, cudaStream_t stream) {
  const NcclElements elements = MovedElements(tensor);
  return ncclSend(elements.data, elements.count, elements.type, peer, communicator, stream);
}

ncclResult_t Receive(const at::Tensor& tensor, int peer, ncclComm_t communicator, cudaStream_t stream) {
  const NcclElements elements = MovedElements(tensor);
  return ncclRecv(elements.data, elements.count, elements.type, peer, communicator, stream);
}

// Splits the rows of `tensor` among the ranks as `splits` says, or into equal parts without splits.
Tensors PartsOf(const char* operation, const at::Tensor& tensor, std::vector<int64_t> splits, int size) {
  CheckContiguous(operation, tensor);
  TORCH_CHECK_VALUE(tensor.dim() > 0, operation, ": a tensor without dimensions cannot be cut");
  if (splits.empty()) {
    TORCH_CHECK_VALUE(tensor.size(0) % size == 0, operation, ": ", tensor.size(0),
                      " rows are not divisible by ", size, " ranks; say how many each gets");
    splits.assign(static_cast<size_t>(size), tensor.size(0) / size);
  }
  TORCH_CHECK_VALUE(splits.size() == static_cast<size_t>(size) &&
                        std::accumulate(splits.begin(), splits.end(), int64_t{0}) == tensor.size(0),
                    operation, ": splits ", splits, " do not cut ", tensor.size(0), " rows for ", size,
                    " ranks");
  return tensor.detach().split_with_sizes(splits, 0);
}

}  // namespace

HostBackend::WorkHandle HostBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& input = OnlyTensor("all_gather", inputs);
  const Tensors& list = ForEachRank("all_gather", outputs, getSize(), input);
  CheckContiguous("all_gather", input);
  CheckSameCount("all_gather", input, list[static_cast<size_t>(getRank())]);
  Call call{"all_gather", c10d::OpType::ALLGATHER, opts.timeout, {{input}, list}};
  if (OneSize(list)) {
    const at::Tensor flat = FlatFor(list);
    call.content.after = [flat, list] { CopyOut(flat, list); };
    return Issue(std::move(call), false, [&](ncclComm_t communicator, cudaStream_t stream) {
      const NcclElements sent = MovedElements(input);
      return ncclAllGather(sent.data, flat.data_ptr(), sent.count, sent.type, communicator, stream);
    });
  }
  return Issue(std::move(call), true, [&](ncclComm_t communicator, cudaStream_t stream) {
    return ForRanks(getSize(), [&](int root) {
      const NcclElements received = MovedElements(list[static_cast<size_t>(root)]);
      const void* sent = root == getRank() ? input.data_ptr() : received.data;
      return ncclBroadcast(sent, received.data, received.count, received.type, root, communicator, stream);
    });
  });
}

// Each rank contributes several tensors. As over gloo, they travel as one flat tensor in one AllGather. All
// of them must therefore have one type, and every rank's tensors the same sizes.
HostBackend::WorkHandle HostBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                         const c10d::AllgatherOptions& opts) {
  const BlockGuard guard(*this);
  constexpr const char* kOperation = "all_gather_coalesced";
  TORCH_CHECK_VALUE(!inputs.empty(), kOperation, ": the list of inputs is empty");
  const Tensors received = ForEachInput(kOperation, outputs, inputs, getSize());
  int64_t elements = 0;
  for (const at::Tensor& input : inputs) elements += input.numel();
  const at::Tensor sent = at::empty({elements}, inputs[0].options());
  CopyIn(inputs, sent);
  const at::Tensor flat = at::empty({getSize() * elements}, inputs[0].options());
  Call call{kOperation, c10d::OpType::ALLGATHER_COALESCED, opts.timeout, {inputs, received}};
  call.content.kept = {sent};
  call.content.after = [flat, received] { CopyOut(flat, received); };
  return Issue(std::move(call), false, [&](ncclComm_t communicator, cudaStream_t stream) {
    const NcclElements own = MovedElements(sent);
    return ncclAllGather(own.data, flat.data_ptr(), own.count, own.type, communicator, stream);
  });
}

HostBackend::WorkHandle HostBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                    const c10d::ReduceScatterOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& output = OnlyTensor("reduce_scatter", outputs);
  const Tensors& list = ForEachRank("reduce_scatter", inputs, getSize(), output);
  CheckContiguous("reduce_scatter", output);
  CheckSameCount("reduce_scatter", output, list[static_cast<size_t>(getRank())]);
  const NcclElements received = ReducedElements("reduce_scatter", output);
  { const ReduceOperator probe("reduce_scatter", opts.reduceOp, output, communicator_->handle()); }
  Call call{"reduce_scatter", c10d::OpType::REDUCE_SCATTER, opts.timeout, {list, {output}}};
  if (OneSize(list)) {
    const at::Tensor flat = FlatFor(list);
    CopyIn(list, flat);
    call.content.kept = {flat};
    return Issue(std::move(call), false, [&](ncclComm_t communicator, cudaStream_t stream) {
      const ReduceOperator with("reduce_scatter", opts.reduceOp, output, communicator);
      return ncclReduceScatter(flat.data_ptr(), received.data, received.count, received.type, with.get(),
                               communicator, stream);
    });
  }
  return Issue(std::move(call), true, [&](ncclComm_t communicator, cudaStream_t stream) {
    const ReduceOperator with("reduce_scatter", opts.reduceOp, output, communicator);
    return ForRanks(getSize(), [&](int root) {
      const NcclElements sent = MovedElements(list[static_cast<size_t>(root)]);
      return ncclReduce(sent.data, received.data, sent.count, sent.type, with.get(), root, communicator,
                        stream);
    });
  });
}

HostBackend::WorkHandle HostBackend::gather(TensorLists& outputs, Tensors& inputs,
                                            const c10d::GatherOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& input = OnlyTensor("gather", inputs);
  CheckContiguous("gather", input);
  CheckRank("gather", "destination rank", opts.rootRank);
  const bool is_root = getRank() == opts.rootRank;
  TORCH_CHECK_VALUE(is_root || outputs.empty(), "gather: only the destination takes a list of outputs");
  const Tensors list = is_root ? ForEachRank("gather", outputs, getSize(), input) : Tensors{};
  if (is_root) CheckSameCount("gather", input, list[static_cast<size_t>(getRank())]);
  return Issue({"gather", c10d::OpType::GATHER, opts.timeout, {{input}, list}}, true,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 const ncclResult_t sent = Send(input, static_cast<int>(opts.rootRank), communicator, stream);
                 if (sent != ncclSuccess || !is_root) return sent;
                 return ForRanks(getSize(), [&](int rank) {
                   return Receive(list[static_cast<size_t>(rank)], rank, communicator, stream);
                 });
               });
}

HostBackend::WorkHandle HostBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                             const c10d::ScatterOptions& opts) {
  const BlockGuard guard(*this);
  const at::Tensor& output = OnlyTensor("scatter", outputs);
  CheckContiguous("scatter", output);
  CheckRank("scatter", "source rank", opts.rootRank);
  const bool is_root = getRank() == opts.rootRank;
  TORCH_CHECK_VALUE(is_root || inputs.empty(), "scatter: only the source takes a list of inputs");
  const Tensors list = is_root ? ForEachRank("scatter", inputs, getSize(), output) : Tensors{};
  if (is_root) CheckSameCount("scatter", output, list[static_cast<size_t>(getRank())]);
  return Issue({"scatter", c10d::OpType::SCATTER, opts.timeout, {list, {output}}}, true,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 const auto receive = [&] {
                   return Receive(output, static_cast<int>(opts.rootRank), communicator, stream);
                 };
                 if (!is_root) return receive();
                 const ncclResult_t sent = ForRanks(getSize(), [&](int rank) {
                   return Send(list[static_cast<size_t>(rank)], rank, communicator, stream);
                 });
                 return sent == ncclSuccess ? receive() : sent;
               });
}

HostBackend::WorkHandle HostBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                   std::vector<int64_t>& output_splits,
                                                   std::vector<int64_t>& input_splits,
                                                   const c10d::AllToAllOptions& opts) {
  const BlockGuard guard(*this);
  Tensors outputs = PartsOf("all_to_all_single", output, output_splits, getSize());
  Tensors inputs = PartsOf("all_to_all_single", input, input_splits, getSize());
  return Exchange({"all_to_all", c10d::OpType::ALLTOALL_BASE, opts.timeout, {{input}, {output}}}, outputs,
                  inputs);
}

HostBackend::WorkHandle HostBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllToAllOptions& opts) {
  const BlockGuard guard(*this);
  TORCH_CHECK_VALUE(inputs.size() == static_cast<size_t>(getSize()), "all_to_all: ", inputs.size(),
                    " inputs for ", getSize(), " ranks");
  return Exchange({"all_to_all", c10d::OpType::ALLTOALL, opts.timeout, {inputs, outputs}}, outputs, inputs);
}

HostBackend::WorkHandle HostBackend::Exchange(Call call, const Tensors& outputs, const Tensors& inputs) {
  ForEachRank("all_to_all", {outputs}, getSize(), inputs[0]);
  CheckContiguous("all_to_all", inputs, inputs[0]);
  CheckSameCount("all_to_all", inputs[static_cast<size_t>(getRank())],
                 outputs[static_cast<size_t>(getRank())]);
  return Issue(std::move(call), true, [&](ncclComm_t communicator, cudaStream_t stream) {
    return ForRanks(getSize(), [&](int rank) {
      const auto index = static_cast<size_t>(rank);
      const ncclResult_t sent = Send(inputs[index], rank, communicator, stream);
      return sent == ncclSuccess ? Receive(outputs[index], rank, communicator, stream) : sent;
    });
  });
}

}  // namespace dynamiccl::torch_backend
