// SPDX-License-Identifier: Apache-2.0
// A hostccl stream serves as the channel's thread: functions that are queued on the stream run in order.
#include "zero_workloads/torch_backend/pair_channel.h"

#include <c10/util/Exception.h>

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

void PairChannel::Meeting::CheckUsable() const {
  TORCH_CHECK_WITH(DistBackendError, aborted_because.empty(),
                   "the process group cannot be used any more: ", aborted_because);
}

std::shared_ptr<Communicator> PairChannel::Meeting::Meet() {
  {
    const std::lock_guard lock(mutex);
    CheckUsable();
    if (communicator != nullptr) return communicator;
  }
  auto made = std::make_shared<Communicator>(*store, place);
  const std::lock_guard lock(mutex);
  CheckUsable();
  return communicator = std::move(made);
}

std::shared_ptr<Communicator> PairChannel::Ready() {
  if (hostcclStreamQuery(queue_) != ncclSuccess) return nullptr;  // earlier messages are not issued yet
  const std::lock_guard lock(meeting_->mutex);
  return meeting_->communicator;
}

void PairChannel::Defer(c10::intrusive_ptr<PendingWork> work, Issue issue) {
  {
    const std::lock_guard lock(meeting_->mutex);
    meeting_->waiting.push_back(work);
  }
  hostcclLaunchHostFunc(queue_, &Run, new Deferred{meeting_, std::move(work), std::move(issue)});
}

void PairChannel::Run(void* deferred) {
  const std::unique_ptr<Deferred> message(static_cast<Deferred*>(deferred));
  try {
    message->issue(message->meeting->Meet());
  } catch (...) {
    message->work->Fail(std::current_exception());
  }
  const std::lock_guard lock(message->meeting->mutex);
  std::erase(message->meeting->waiting, message->work);
}

// The mutex is not held while the works end, because the channel's thread needs it.
void PairChannel::Abort(const std::string& reason) {
  std::shared_ptr<Communicator> made;
  std::vector<c10::intrusive_ptr<PendingWork>> waiting;
  {
    const std::lock_guard lock(meeting_->mutex);
    if (meeting_->aborted_because.empty()) meeting_->aborted_because = reason;
    made = meeting_->communicator;
    waiting = meeting_->waiting;
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
