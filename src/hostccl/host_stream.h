// SPDX-License-Identifier: Apache-2.0
// A stream: an ordered queue of work with its own thread. In hostccl a cudaStream_t points to one.
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

// A point in a stream's work. The stream that reaches it and everyone who waits for it share it by
// shared_ptr. Any thread.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) != 0; }
  // Returns when it was completed, in nanoseconds of CLOCK_MONOTONIC; valid once done.
  int64_t done_ns() const { return done_ns_; }
  // Yields for a while, then sleeps until it is done.
  void Wait() const;
  // Yields for at most `ns` nanoseconds; returns true if it is done.
  bool WaitBriefly(int64_t ns) const;
  void Complete();

 private:
  std::atomic<uint32_t> state_{0};
  int64_t done_ns_ = 0;
};

// Runs work in the order in which it was enqueued, one piece at a time, on its own thread. The table of
// handles owns it (FindStream). Any thread may enqueue.
//
// A caller may also run the next work itself on an idle stream, which saves waking the thread: call TryClaim,
// do the work, and call Release, or HandOver if the work takes long.
class HostStream {
 public:
  using Work = std::function<ncclResult_t()>;

  HostStream();
  // Waits for the queued work.
  ~HostStream();

  // Any thread. The first result other than ncclSuccess is kept for TakeError.
  void Enqueue(Work work);
  // Claims an idle stream for a caller that runs the next work itself. Work that is enqueued meanwhile waits
  // for the Release or HandOver that must follow.
  bool TryClaim();
  // Like TryClaim, but tries for `ns` nanoseconds, for a caller that knows that the stream's work is about to
  // end.
  bool ClaimSoon(int64_t ns);
  // Reports that the claimed work is done, with this result.
  void Release(ncclResult_t result);
  // Lets the stream's thread do the rest of the claimed work, before anything that was enqueued since.
  void HandOver(Work rest);
  // Returns a completion that is reached when all work enqueued so far is done; already done on an idle
  // stream.
  std::shared_ptr<Completion> Record();
  // Returns when all work enqueued so far is done. The caller runs the work that the stream's thread has not
  // taken yet, in order, because it has nothing else to do, and handing small work to another thread takes
  // longer than the work.
  void Synchronize();
  // Makes later work wait for the completion. The caller does not wait.
  void WaitFor(std::shared_ptr<const Completion> completion);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Returns the first error since the last call, or ncclSuccess.
  ncclResult_t TakeError() {
    const bool none = error_.load(std::memory_order_acquire) == ncclSuccess;
    return none ? ncclSuccess : error_.exchange(ncclSuccess);
  }

 private:
  // pending_ counts pieces of work in units of four. Its lowest bit is set while a caller has claimed the
  // stream, the next one while the stream's thread runs a piece. At most one of the two is set.
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kRunning = 2;
  static constexpr uint64_t kOneWork = 4;

  void Run();
  bool Next(Work& work);
  // Returns true if the stream's thread may take the next work.
  bool Runnable() const {
    return !queue_.empty() && (pending_.load(std::memory_order_acquire) & kClaimed) == 0;
  }
  // Claims a stream whose work has not begun, and returns how many pieces are queued; 0 if there are none or
  // somebody runs one.
  size_t ClaimQueued();
  // Runs the first queued piece for a caller that has claimed the stream.
  void RunFirst();
  void WakeIfSleeping();
  void KeepError(ncclResult_t result);

  // The mutex guards queue_, sleeping_ and stopping_.
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Work> queue_;
  bool sleeping_ = false;
  bool stopping_ = false;
  std::atomic<uint64_t> pending_{0};  // work enqueued and not finished, and the claim
  std::atomic<ncclResult_t> error_{ncclSuccess};
  std::thread worker_;  // last member, so the thread starts when the other members exist
};

// Returns the stream of a handle, or the process-wide stream for a null handle; null if the handle is no live
// stream. It is shared, so a stream that another thread destroys stays valid while it is used.
std::shared_ptr<HostStream> FindStream(cudaStream_t handle);

}  // namespace dynamiccl::hostccl
