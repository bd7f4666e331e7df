// SPDX-License-Identifier: Apache-2.0
// A stream: an ordered queue of work with a thread of its own. What hides behind cudaStream_t in hostccl.
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

// A point in a stream's work. Shared by the stream that reaches it and everybody who waits for it:
// shared_ptr.
class Completion {
 public:
  bool done() const { return state_.load(std::memory_order_acquire) != 0; }
  // CLOCK_MONOTONIC; valid once done.
  int64_t done_ns() const { return done_ns_; }
  // Yields for a while, then sleeps.
  void Wait() const;
  // Yields for `ns` at most; whether it was done.
  bool WaitBriefly(int64_t ns) const;
  void Complete();

 private:
  std::atomic<uint32_t> state_{0};
  int64_t done_ns_ = 0;
};

class HostStream {
 public:
  using Work = std::function<ncclResult_t()>;

  HostStream();
  // Waits for the queued work.
  ~HostStream();

  // Any thread. The first result other than ncclSuccess is kept for TakeError.
  void Enqueue(Work work);
  // For a caller that runs the next work itself. Only an idle stream can be claimed; work that is enqueued
  // until Release or HandOver, one of which must follow, waits.
  bool TryClaim();
  // For a caller that knows that the stream's work is about to end: tries for `ns`.
  bool ClaimSoon(int64_t ns);
  // The claimed work is done, with this result.
  void Release(ncclResult_t result);
  // The stream's thread does the rest of the claimed work, before anything enqueued since.
  void HandOver(Work rest);
  // Completes when all work enqueued so far is done; complete already on an idle stream.
  std::shared_ptr<Completion> Record();
  // Later work waits for it.
  void WaitFor(std::shared_ptr<const Completion> completion);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // The first error since the last call.
  ncclResult_t TakeError() { return error_.exchange(ncclSuccess); }

 private:
  // pending_ counts in twos; its lowest bit says that a caller has claimed the stream.
  static constexpr uint64_t kClaimed = 1;
  static constexpr uint64_t kOneWork = 2;

  void Run();
  bool Next(Work& work);
  // The stream's thread may take the next work.
  bool Runnable() const {
    return !queue_.empty() && (pending_.load(std::memory_order_acquire) & kClaimed) == 0;
  }
  void WakeIfSleeping();
  void KeepError(ncclResult_t result);

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Work> queue_;
  bool sleeping_ = false;
  bool stopping_ = false;
  std::atomic<uint64_t> pending_{0};  // enqueued and not finished, and whether it is claimed
  std::atomic<ncclResult_t> error_{ncclSuccess};
  std::thread worker_;  // last: starts when the rest exists
};

// The stream behind a handle; the process-wide stream for a null handle; null for a handle that is not a live
// stream. Shared, so that a stream destroyed by another thread stays valid while it is used.
std::shared_ptr<HostStream> FindStream(cudaStream_t handle);

}  // namespace dynamiccl::hostccl
