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

// Owned by the object whose work it does. Where memory or descriptors run out it goes on as soon as it can,
// since ranks of other processes wait for it.
class PollingThread {
 public:
  PollingThread();
  // Stops it. In a job a thread of ours is never stopped.
  ~PollingThread() { Stop(); }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  // Called once. `run` loops until WaitFor returns false; where it throws it is called again.
  void Start(std::function<void()> run);
  // Any thread: ends the wait that is under way, or the next one, at once.
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
