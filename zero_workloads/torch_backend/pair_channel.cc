// SPDX-License-Identifier: Apache-2.0
// A hostccl stream serves as the channel's thread: functions that are queued on the stream run in order.
#include "zero_workloads/torch_backend/pair_channel.h"

#include <utility>

namespace dynamiccl::torch_backend {

PairChannel::PairChannel(c10::intrusive_ptr<c10d::Store> store, Communicator::Meeting meeting)
    : meeting_(std::make_shared<Meeting>()) {
  meeting_->store = std::move(store);
  meeting_->place = std::move(meeting);
  hostcclStreamCreate(&queue_);
}

PairChannel::~PairChannel() {
  // A busy queue waits for a peer that may never arrive, so it is not destroyed. Its thread then ends with
  // the process.
  if (hostcclStreamQuery(queue_) == ncclSuccess) hostcclStreamDestroy(queue_);
}

std::shared_ptr<Communicator> PairChannel::Meeting::Meet() {
  {
    const std::lock_guard lock(mutex);
    if (communicator != nullptr) return communicator;
  }
  auto made = std::make_shared<Communicator>(*store, place);
  const std::lock_guard lock(mutex);
  return communicator = std::move(made);
}

std::shared_ptr<Communicator> PairChannel::Ready() {
  if (hostcclStreamQuery(queue_) != ncclSuccess) return nullptr;  // earlier messages are not issued yet
  const std::lock_guard lock(meeting_->mutex);
  return meeting_->communicator;
}

void PairChannel::Defer(c10::intrusive_ptr<PendingWork> work, Issue issue) {
  hostcclLaunchHostFunc(queue_, &Run, new Deferred{meeting_, std::move(work), std::move(issue)});
}

void PairChannel::Run(void* deferred) {
  const std::unique_ptr<Deferred> message(static_cast<Deferred*>(deferred));
  try {
    message->issue(message->meeting->Meet());
  } catch (...) {
    message->work->Fail(std::current_exception());
  }
}

void PairChannel::Abort(const std::string& reason) {
  const std::lock_guard lock(meeting_->mutex);
  if (meeting_->communicator != nullptr) meeting_->communicator->Abort(reason);
}

void PairChannel::Synchronize() {
  if (const auto communicator = Ready()) hostcclStreamSynchronize(communicator->stream());
}

}  // namespace dynamiccl::torch_backend
