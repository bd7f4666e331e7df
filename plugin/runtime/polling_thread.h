// SPDX-License-Identifier: Apache-2.0
// A thread of ours that waits for descriptors and can be woken by other threads. It gets none of the
// program's signals, makes no CUDA call, and no exception leaves it.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"

namespace dynamiccl {

class PollingThread {
 public:
  PollingThread();
  // Stops it. In a job a thread of ours is never stopped.
  ~PollingThread() { Stop(); }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  // Once. `run` returns when WaitFor says so; where it throws it is called again.
  void Start(std::function<void()> run);
  // Any thread: the wait that is under way, or the next, ends at once.
  void Wake();
  // Wakes it for the last time and waits for its end.
  void Stop();

  // The thread itself: waits until a descriptor is ready, it is woken, or `timeout_ms` have passed (-1: for
  // ever). False: it is to end.
  bool WaitFor(std::vector<pollfd>& descriptors, int timeout_ms);

 private:
  UniqueFd wake_read_;
  UniqueFd wake_write_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace dynamiccl
