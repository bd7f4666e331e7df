// SPDX-License-Identifier: Apache-2.0
// A stream: a queue of work that runs in order on a thread of its own. In hostccl a cudaStream_t points to a
// stream.
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
#include "src/transport/process_identity.h"

namespace dynamiccl::hostccl {

// A point in a stream's work. The stream that reaches the point and everyone who waits for it share the
// object by shared_ptr. Any thread may use it.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) != 0; }
  // Returns when the point was reached, in nanoseconds of CLOCK_MONOTONIC. Valid once done() is true.
  int64_t done_ns() const { return done_ns_; }
  // Returns the value that was passed to Complete. Valid once done() is true.
  ncclResult_t result() const { return result_; }
  // Yields for a while, then sleeps until the point is reached.
  void Wait() const;
  // Yields for at most `ns` nanoseconds. Returns true if the point was reached.
  bool WaitBriefly(int64_t ns) const;
  void Complete(ncclResult_t result);

 private:
  std::atomic<uint32_t> state_{0};
  int64_t done_ns_ = 0;
  ncclResult_t result_ = ncclSuccess;
};

// Runs work in the order in which it was enqueued, one piece at a time, on its own thread. The table of
// handles owns the stream (FindStream). Any thread may enqueue work.
//
// On an idle stream a caller may also run the next work itself, which saves waking the stream's thread: it
// calls TryClaim, does the work, and calls Release, or HandOver if the work takes long.
class HostStream {
 public:
  using Work = std::function<ncclResult_t()>;

  HostStream();
  // Waits until the queued work is done.
  ~HostStream();

  // Adds work to the queue. The first result other than ncclSuccess is kept for TakeError. Any thread may
  // call this.
  void Enqueue(Work work);
  // Claims an idle stream for a caller that runs the next work itself. The caller must then call Release or
  // HandOver; work that is enqueued meanwhile waits for that.
  bool TryClaim();
  // Does as TryClaim, but keeps trying for `ns` nanoseconds. A caller uses it when the stream's work is about
  // to end.
  bool ClaimSoon(int64_t ns);
  // Ends the claim. `result` is the result of the work that the caller has done.
  void Release(ncclResult_t result);
  // Ends the claim and lets the stream's thread do the rest of the work, before anything that was enqueued
  // since the claim.
  void HandOver(Work rest);
  // Returns a completion that is done when all work enqueued so far is done; on an idle stream it is done
  // already. Its result is the error that TakeError would return at that point.
  std::shared_ptr<Completion> Record();
  // Waits until all work enqueued so far is done. The caller has nothing else to do, so it runs the work that
  // the stream's thread has not taken yet. Passing small work to another thread would take longer than the
  // work.
  void Synchronize();
  // Makes later work on this stream wait for the completion. The caller does not wait.
  void WaitFor(std::shared_ptr<const Completion> completion);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Returns true in a child of fork(), where the stream's thread does not exist. The child can neither use
  // the stream nor destroy it: the destructor would wait for ever.
  bool inherited() const { return process_ != ProcessToken(); }
  // Returns the first error since the last call of this function, or ncclSuccess.
  ncclResult_t TakeError() {
    const bool none = error_.load(std::memory_order_acquire) == ncclSuccess;
    return none ? ncclSuccess : error_.exchange(ncclSuccess);
  }

 private:
  // pending_ counts pieces of work in units of four. Its lowest bit is set while a caller has claimed the
  // stream, and the next bit while the stream's thread runs a piece. At most one of the two bits is set.
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kRunning = 2;
  static constexpr uint64_t kOneWork = 4;

  void Run();
  bool Next(Work& work);
  // Returns true if there is work that the stream's thread may take.
  bool Runnable() const {
    return !queue_.empty() && (pending_.load(std::memory_order_acquire) & kClaimed) == 0;
  }
  // Claims a stream on which no work is running, and returns how many pieces are queued. Returns 0, without a
  // claim, if no piece is queued or somebody runs one.
  size_t ClaimQueued();
  // Runs the first queued piece of work for a caller that has claimed the stream.
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
  const uint64_t process_ = ProcessToken();
  std::thread worker_;  // last member, so the thread starts when the other members exist
};

// Returns the stream of a handle; for a null handle the process-wide stream; null if the handle is no live
// stream, or a stream of the process that forked this one. The result shares ownership, so a stream that
// another thread destroys stays valid while it is used.
std::shared_ptr<HostStream> FindStream(cudaStream_t handle);

}  // namespace dynamiccl::hostccl
