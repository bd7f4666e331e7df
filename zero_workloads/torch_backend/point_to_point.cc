// SPDX-License-Identifier: Apache-2.0
// Send and receive. Inside a coalescing block, messages go through the group's communicator as one NCCL
// group. Outside, they go through the pair's channel.
#include <c10/util/Exception.h>

#include <algorithm>

#include "zero_workloads/torch_backend/host_backend.h"
#include "zero_workloads/torch_backend/nccl_operands.h"

namespace dynamiccl::torch_backend {
namespace {

// Two ranks may take this much longer to meet than a message's time-out. The message's own deadline thus
// passes first, and its error names the message.
constexpr std::chrono::seconds kRendezvousGrace{10};

const at::Tensor& CheckMessage(const char* operation, const std::vector<at::Tensor>& tensors, int tag) {
  const at::Tensor& tensor = OnlyTensor(operation, tensors);
  CheckDense(operation, tensor);
  TORCH_CHECK_VALUE(tag == 0, operation, ": tag ", tag,
                    ": NCCL matches messages of two ranks by their order, not by tags; use tag 0");
  return tensor;
}

}  // namespace

// `calls` returns the NCCL calls of the message. Its argument is the peer's rank in the communicator that
// carries the message.
HostBackend::WorkHandle HostBackend::Message(Call call, int peer,
                                             const std::function<NcclCalls(int peer)>& calls) {
  CheckRank(call.operation, "rank", peer);
  std::unique_lock lock(mutex_);
  if (Coalesces()) {  // the whole block is one NCCL group
    lock.unlock();
    return Issue(std::move(call), false, calls(peer));
  }
  TORCH_CHECK_VALUE(peer != getRank(), call.operation, ": rank ", peer,
                    " is this rank: use batch_isend_irecv with both the send and the receive");
  communicator_->handle();  // throws after an abort of the group
  const int rank_in_pair = getRank() < peer ? 0 : 1;
  auto& channel = pairs_[peer];
  if (channel == nullptr) {
    const std::string pair = c10::str(std::min(peer, getRank()), "_", std::max(peer, getRank()));
    channel = std::make_unique<PairChannel>(
        store_->clone(), Communicator::Rendezvous{"pair " + pair, "nccl_id_pair_" + pair, rank_in_pair, 2,
                                                  options_->timeout + kRendezvousGrace});
  }
  const NcclCalls message = calls(1 - rank_in_pair);
  if (const auto communicator = channel->Ready()) {
    lock.unlock();
    return IssueOn(communicator, std::move(call), false, message);
  }
  auto work = NewWork(std::move(call));
  work->Defer();
  channel->Defer(work,
                 [work, message, operation = call.operation](const std::shared_ptr<Communicator>& made) {
                   const ncclResult_t result = IssueToNccl(*made, false, message);
                   if (result != ncclSuccess)
                     TORCH_CHECK_WITH(DistBackendError, false, operation, ": ", made->Refusal(result));
                   work->Launch(made);
                 });
  watch_->Add(work);
  return work;
}

HostBackend::WorkHandle HostBackend::send(Tensors& tensors, int destination, int tag) {
  const BlockGuard guard(*this);
  const at::Tensor& tensor = CheckMessage("send", tensors, tag);
  const NcclElements elements = MovedElements(tensor);
  return Message({"send", c10d::OpType::SEND, c10d::kUnsetTimeout, {{tensor}, {tensor}}}, destination,
                 [elements](int peer) -> NcclCalls {
                   return [elements, peer](ncclComm_t communicator, cudaStream_t stream) {
                     return ncclSend(elements.data, elements.count, elements.type, peer, communicator,
                                     stream);
                   };
                 });
}

HostBackend::WorkHandle HostBackend::recv(Tensors& tensors, int source, int tag) {
  const BlockGuard guard(*this);
  const at::Tensor& tensor = CheckMessage("recv", tensors, tag);
  const NcclElements elements = MovedElements(tensor);
  return Message({"recv", c10d::OpType::RECV, c10d::kUnsetTimeout, {{tensor}, {tensor}}}, source,
                 [elements](int peer) -> NcclCalls {
                   return [elements, peer](ncclComm_t communicator, cudaStream_t stream) {
                     return ncclRecv(elements.data, elements.count, elements.type, peer, communicator,
                                     stream);
                   };
                 });
}

}  // namespace dynamiccl::torch_backend
