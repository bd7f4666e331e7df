// SPDX-License-Identifier: Apache-2.0
// A stream: an ordered queue of work with a thread of its own. It is what a cudaStream_t points at in
// hostccl.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "src/nccl_abi/host_stream.h"

namespace dynamiccl::hostccl {

// A point in a stream's work. The stream that reaches it and everybody who waits for it share it by
// shared_ptr. Any thread.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) != 0; }
  // Returns the nanoseconds of CLOCK_MONOTONIC; valid once done.
  int64_t done_ns() const { return done_ns_; }
  // Yields for a while, then sleeps until it is done.
  void Wait() const;
  // Yields for at most `ns` nanoseconds; returns whether it is done.
  bool WaitBriefly(int64_t ns) const;
  void Complete();

 private:
  std::atomic<uint32_t> state_{0};
  int64_t done_ns_ = 0;
};

// Runs work in the order in which it was enqueued, one piece at a time, on its own thread. The table of
// handles owns it (FindStream). Any thread may enqueue.
//
// A caller may also run the next work itself on an idle stream, which saves waking the thread: TryClaim, do
// the work, then Release; or HandOver if it turns out to take long.
class HostStream {
 public:
  using Work = std::function<ncclResult_t()>;

  HostStream();
  // Waits for the queued work.
  ~HostStream();

  // Any thread. The first result other than ncclSuccess is kept for TakeError.
  void Enqueue(Work work);
  // Claims an idle stream for a caller that runs the next work itself. Work that is enqueued meanwhile waits
  // until Release or HandOver, one of which must follow.
  bool TryClaim();
  // Does as TryClaim, for a caller that knows that the stream's work is about to end: it tries for `ns`
  // nanoseconds.
  bool ClaimSoon(int64_t ns);
  // Reports that the claimed work is done, with this result.
  void Release(ncclResult_t result);
  // Lets the stream's thread do the rest of the claimed work, before anything that was enqueued since.
  void HandOver(Work rest);
  // A completion that is reached when all work enqueued so far is done; already done on an idle stream.
  std::shared_ptr<Completion> Record();
  // Makes later work wait for the completion. The caller does not wait.
  void WaitFor(std::shared_ptr<const Completion> completion);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // The first error since the last call, or ncclSuccess.
  ncclResult_t TakeError() { return error_.exchange(ncclSuccess); }

 private:
  // pending_ counts pieces of work in twos. Its lowest bit says that a caller has claimed the stream.
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kOneWork = 2;

  void Run();
  bool Next(Work& work);
  // Returns whether the stream's thread may take the next work.
  bool Runnable() const {
    return !queue_.empty() && (pending_.load(std::memory_order_acquire) & kClaimed) == 0;
  }
  void WakeIfSleeping();
  void KeepError(ncclResult_t result);

  // The mutex guards queue_, sleeping_ and stopping_.
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Work> queue_;
  bool sleeping_ = false;
  bool stopping_ = false;
  std::atomic<uint64_t> pending_{0};  // enqueued and not finished, and the claim
  std::atomic<ncclResult_t> error_{ncclSuccess};
  std::thread worker_;  // last member, so that it starts when the rest exists
};

// Returns the stream behind a handle, or the process-wide stream for a null handle; null for a handle that is
// not a live stream. Shared, so that a stream destroyed by another thread stays valid while it is used.
std::shared_ptr<HostStream> FindStream(cudaStream_t handle);

}  // namespace dynamiccl::hostccl
