// SPDX-License-Identifier: Apache-2.0
// A work is constructed, launched at once or deferred and launched later, and then ends. The stream's thread
// completes it. A deadline or an abort may end it earlier, from another thread. Only the first ending counts.
#include "zero_workloads/torch_backend/pending_work.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zero_workloads/torch_backend/callback_threads.h"

namespace dynamiccl::torch_backend {

PendingWork::PendingWork(int rank, CallText text, const std::string& title, Content content,
                         std::chrono::milliseconds timeout)
    : Work(rank, text.type, title.c_str(), content.inputs),
      text_(std::move(text)),
      timeout_(timeout),
      deadline_(std::chrono::steady_clock::now() + timeout) {
  Add(std::move(content));
}

PendingWork::~PendingWork() {
  if (done_ != nullptr) hostcclEventDestroy(done_);
}

void PendingWork::release_resources() {
  outputs_.clear();
  communicator_.reset();
  future_.reset();
}

void PendingWork::Add(Content content) {
  const auto append = [](std::vector<at::Tensor>& to, std::vector<at::Tensor>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(kept_, content.inputs);
  append(kept_, content.kept);
  append(outputs_, content.outputs);
  if (content.after) after_.push_back(std::move(content.after));
}

void PendingWork::Launch(std::shared_ptr<Communicator> communicator) {
  Communicator& on = *communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator_ = std::move(communicator);
  }
  if (on.Idle()) {
    Complete();
    return;
  }
  // The stream's thread holds a reference, so that it can complete the work even if all other owners have
  // released it.
  on.WhenDone([self = c10::intrusive_ptr<PendingWork>::reclaim_copy(this)] { self->Complete(); });
  if (deferred_) return;  // a thread may already be waiting
  hostcclEventCreate(&done_);
  hostcclEventRecord(done_, on.stream());
}

void PendingWork::Complete() {
  const std::string failure = communicator_->Failure();
  std::exception_ptr error;
  try {
    TORCH_CHECK_WITH(DistBackendError, failure.empty(),
                     failure.starts_with(Describe()) ? "" : Describe() + ": ", failure);
    for (const auto& copy : after_) copy();
  } catch (...) {
    error = std::current_exception();
  }
  after_.clear();
  kept_.clear();
  End(error);
}

void PendingWork::End(std::exception_ptr error) {
  if (ended_.exchange(true)) return;
  finish(std::move(error));
  SettleFuture();
}

// The future is completed on another thread, because its callbacks may wait for other calls of the group that
// the calling thread has to complete.
void PendingWork::SettleFuture() {
  {
    const std::lock_guard lock(mutex_);
    settled_ = true;
    if (future_ == nullptr) return;
  }
  CallbackThreads::OfProcess().Run(
      [self = c10::intrusive_ptr<PendingWork>::reclaim_copy(this)] { self->CompleteFuture(); });
}

void PendingWork::CompleteFuture() {
  if (exception_ != nullptr)
    future_->setError(exception_);
  else
    future_->markCompleted(c10::IValue(outputs_));
}

c10::intrusive_ptr<c10::ivalue::Future> PendingWork::getFuture() {
  bool settled = false;
  {
    const std::lock_guard lock(mutex_);
    if (future_ != nullptr) return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    settled = settled_;
  }
  if (settled) CompleteFuture();  // no callback has been added yet
  return future_;
}

bool PendingWork::wait(std::chrono::milliseconds timeout) {
  if (timeout != kNoTimeout) {
    std::unique_lock lock(mutex_);
    const bool done = cv_.wait_for(lock, timeout, [this] { return completed_; });
    TORCH_CHECK_WITH(DistBackendError, done, Describe(), ": Timed out after the ", timeout.count(),
                     " ms that wait() was given; the call goes on");
  } else if (deferred_) {
    std::unique_lock lock(mutex_);
    cv_.wait(lock, [this] { return completed_; });
  } else if (done_ != nullptr) {
    hostcclEventSynchronize(done_);  // spins for a while before it sleeps
  }
  WaitForFuture();
  // In this mode of torch every work is registered, and must be unregistered here. In the usual mode only
  // works of functional collectives are registered, and wait_tensor() unregisters them.
  if (c10d::allow_inflight_collective_as_graph_input())
    c10d::unregister_work(c10::intrusive_ptr<PendingWork>::reclaim_copy(this));
  Rethrow();
  return true;
}

// Waits until the future is complete. Its callbacks may still run afterwards, because the future first wakes
// the threads that wait for it.
void PendingWork::WaitForFuture() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    future = future_;
  }
  if (future != nullptr) future->wait();
}

void PendingWork::Rethrow() {
  const std::lock_guard lock(mutex_);
  if (exception_ != nullptr) std::rethrow_exception(exception_);
}

std::shared_ptr<Communicator> PendingWork::IssuedTo() {
  const std::lock_guard lock(mutex_);
  return communicator_;
}

void PendingWork::Expire() {
  const std::string reason = c10::str(Describe(), ": Timed out after ", timeout_.count(),
                                      " ms, the group's timeout: another rank has not issued it, or hangs");
  if (const auto communicator = IssuedTo())
    communicator->Abort(reason);
  else
    Fail(std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, reason)));
}

void PendingWork::abort() {
  if (const auto communicator = IssuedTo()) communicator->Abort(Describe() + " was aborted by the program");
}

std::string PendingWork::Describe() const {
  return c10::str(text_.operation, " number ", text_.sequence, " of group ", text_.group, " (",
                  text_.elements, ") on rank ", rank_);
}

}  // namespace dynamiccl::torch_backend
