// SPDX-License-Identifier: Apache-2.0
// The queue of a stream, its thread, and how callers claim it. Waiting threads yield first and sleep later,
// because waking a thread takes longer than a short wait.
#include "src/hostccl/host_stream.h"

#include <utility>

#include "src/base/clock.h"
#include "src/hostccl/yield_gauge.h"

namespace dynamiccl::hostccl {
namespace {

// In nanoseconds. A futex wake-up costs about 20 us here and a yield 0.14 us. So it pays to yield for a few
// times the cost of a wake-up before sleeping.
constexpr int64_t kYieldNs = 50'000;

// Yields until `ready` returns true or kYieldNs are over. Returns true if `ready` did.
template <typename Ready>
bool YieldUntil(Ready ready, int64_t ns = kYieldNs) {
  if (ready()) return true;
  YieldGauge& gauge = YieldGauge::Mine();
  const int64_t end = MonotonicNanoseconds() + ns;
  while (!ready()) {
    if (gauge.crowded() || MonotonicNanoseconds() > end) {
      gauge.NoteSleep();
      return false;
    }
    gauge.Yield();
  }
  return true;
}

}  // namespace

void Completion::Wait() const {
  if (YieldUntil([this] { return done(); })) return;
  while (!done()) state_.wait(0, std::memory_order_acquire);
}

bool Completion::WaitBriefly(int64_t ns) const {
  return YieldUntil([this] { return done(); }, ns);
}

void Completion::Complete(ncclResult_t result) {
  done_ns_ = MonotonicNanoseconds();
  result_ = result;
  state_.store(1, std::memory_order_release);
  state_.notify_all();
}

HostStream::HostStream() : worker_([this] { Run(); }) {}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  filled_.notify_one();
  worker_.join();
}

void HostStream::Enqueue(Work work) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    pending_.fetch_add(kOneWork, std::memory_order_release);
    wake = sleeping_;
  }
  if (wake) filled_.notify_one();
}

bool HostStream::TryClaim() {
  uint64_t idle = 0;
  return pending_.compare_exchange_strong(idle, kClaimed, std::memory_order_acq_rel);
}

bool HostStream::ClaimSoon(int64_t ns) {
  return YieldUntil([this] { return TryClaim(); }, ns);
}

void HostStream::Release(ncclResult_t result) {
  KeepError(result);
  // During the claim the stream's thread could not take work that was enqueued, and the thread may be asleep.
  // So it is woken now.
  if (pending_.fetch_sub(kClaimed, std::memory_order_acq_rel) != kClaimed) WakeIfSleeping();
}

void HostStream::HandOver(Work rest) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_front(std::move(rest));
    pending_.fetch_add(kOneWork - kClaimed, std::memory_order_release);
  }
  WakeIfSleeping();
}

void HostStream::WakeIfSleeping() {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake = sleeping_;
  }
  if (wake) filled_.notify_one();
}

void HostStream::KeepError(ncclResult_t result) {
  ncclResult_t none = ncclSuccess;
  if (result != ncclSuccess) error_.compare_exchange_strong(none, result);
}

std::shared_ptr<Completion> HostStream::Record() {
  auto completion = std::make_shared<Completion>();
  if (idle()) {
    completion->Complete(error_);
    return completion;
  }
  Enqueue([this, completion] {
    completion->Complete(error_);
    return ncclSuccess;
  });
  return completion;
}

size_t HostStream::ClaimQueued() {
  const std::lock_guard lock(mutex_);
  const uint64_t pending = pending_.load(std::memory_order_acquire);
  if (queue_.empty() || (pending & (kClaimed | kRunning)) != 0) return 0;
  pending_.fetch_add(kClaimed, std::memory_order_acq_rel);
  return queue_.size();
}

void HostStream::RunFirst() {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    work = std::move(queue_.front());
    queue_.pop_front();
  }
  KeepError(work());
  pending_.fetch_sub(kOneWork, std::memory_order_release);
}

void HostStream::Synchronize() {
  size_t left = ClaimQueued();
  if (left == 0) return Record()->Wait();
  for (; left > 0; --left) RunFirst();
  Release(ncclSuccess);
}

void HostStream::WaitFor(std::shared_ptr<const Completion> completion) {
  Enqueue([completion = std::move(completion)] {
    completion->Wait();
    return ncclSuccess;
  });
}

// Takes the next work for the stream's thread, which first yields and then sleeps until there is some. Work
// that appears while the thread yields may be gone once the thread has the lock, because a caller of
// Synchronize took the work. More work is then likely, so the thread yields again: waking it from sleep would
// cost the caller a system call.
bool HostStream::Next(Work& work) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return stopping_ && queue_.empty(); };
  while (!Runnable() && !ended()) {
    lock.unlock();
    const bool seen = YieldUntil([this] {
      const uint64_t pending = pending_.load(std::memory_order_acquire);
      return pending >= kOneWork && (pending & kClaimed) == 0;
    });
    lock.lock();
    if (seen) continue;
    sleeping_ = true;
    filled_.wait(lock, [&] { return Runnable() || ended(); });
    sleeping_ = false;
  }
  if (queue_.empty()) return false;
  work = std::move(queue_.front());
  queue_.pop_front();
  pending_.fetch_add(kRunning, std::memory_order_acq_rel);
  return true;
}

void HostStream::Run() {
  Work work;
  while (Next(work)) {
    KeepError(work());
    work = nullptr;
    pending_.fetch_sub(kOneWork + kRunning, std::memory_order_release);
  }
}

}  // namespace dynamiccl::hostccl
