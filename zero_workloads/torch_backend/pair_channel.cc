// SPDX-License-Identifier: Apache-2.0
// A hostccl stream serves as the channel's thread: functions that are queued on the stream run in order.
#include "zero_workloads/torch_backend/pair_channel.h"

#include <c10/util/Exception.h>

#include <utility>

namespace dynamiccl::torch_backend {

PairChannel::PairChannel(c10::intrusive_ptr<c10d::Store> store, Communicator::Rendezvous rendezvous)
    : shared_(std::make_shared<Shared>()) {
  shared_->store = std::move(store);
  shared_->rendezvous = std::move(rendezvous);
  hostcclStreamCreate(&queue_);
}

PairChannel::~PairChannel() {
  // A busy queue waits for a peer that may never arrive, so it is not destroyed. Its thread then ends with
  // the process.
  if (hostcclStreamQuery(queue_) == ncclSuccess) hostcclStreamDestroy(queue_);
}

void PairChannel::Shared::CheckUsable() const {
  TORCH_CHECK_WITH(DistBackendError, aborted_because.empty(),
                   "the process group cannot be used any more: ", aborted_because);
}

std::shared_ptr<Communicator> PairChannel::Shared::AwaitCommunicator() {
  {
    const std::lock_guard lock(mutex);
    CheckUsable();
    if (communicator != nullptr) return communicator;
  }
  auto made = std::make_shared<Communicator>(*store, rendezvous);
  const std::lock_guard lock(mutex);
  CheckUsable();
  return communicator = std::move(made);
}

std::shared_ptr<Communicator> PairChannel::Ready() {
  if (hostcclStreamQuery(queue_) != ncclSuccess) return nullptr;  // earlier messages are not issued yet
  const std::lock_guard lock(shared_->mutex);
  return shared_->communicator;
}

void PairChannel::Defer(c10::intrusive_ptr<PendingWork> work, Issue issue) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->waiting.push_back(work);
  }
  hostcclLaunchHostFunc(queue_, &Run, new Deferred{shared_, std::move(work), std::move(issue)});
}

void PairChannel::Run(void* deferred) {
  const std::unique_ptr<Deferred> message(static_cast<Deferred*>(deferred));
  try {
    message->issue(message->shared->AwaitCommunicator());
  } catch (...) {
    message->work->Fail(std::current_exception());
  }
  const std::lock_guard lock(message->shared->mutex);
  std::erase(message->shared->waiting, message->work);
}

// The mutex is not held while the works end, because the channel's thread needs it.
void PairChannel::Abort(const std::string& reason) {
  std::shared_ptr<Communicator> made;
  std::vector<c10::intrusive_ptr<PendingWork>> waiting;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->aborted_because.empty()) shared_->aborted_because = reason;
    made = shared_->communicator;
    waiting = shared_->waiting;
  }
  if (made != nullptr) made->Abort(reason);
  for (const auto& work : waiting) {
    work->Fail(std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, c10::str(work->Describe(), ": ", reason))));
  }
}

void PairChannel::Synchronize() {
  if (const auto communicator = Ready()) hostcclStreamSynchronize(communicator->stream());
}

}  // namespace dynamiccl::torch_backend
