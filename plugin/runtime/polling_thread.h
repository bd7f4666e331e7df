// SPDX-License-Identifier: Apache-2.0
// A thread of this object that waits for descriptors and that other threads can wake. It receives none of the
// program's signals, makes no CUDA call, and no exception leaves it.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"

namespace dynamiccl {

// Owned by the object whose work it does. If memory or descriptors run out, the thread continues as soon as
// possible, because ranks of other processes wait for it.
class PollingThread {
 public:
  PollingThread();
  // Stops the thread. In a job such threads are never stopped.
  ~PollingThread() { Stop(); }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  // Call it once. `run` loops until WaitFor returns false; if it throws, it is called again.
  void Start(std::function<void()> run);
  // Any thread: ends the present wait, or the next one, at once.
  void Wake();
  // Wakes the thread for the last time and waits for its end.
  void Stop();

  // On the thread itself: waits until a descriptor is ready, the thread is woken, or `timeout_ms` have passed
  // (-1: no limit). Returns false if the thread must end.
  bool WaitFor(std::vector<pollfd>& descriptors, int timeout_ms);

 private:
  UniqueFd wake_read_;
  UniqueFd wake_write_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace dynamiccl
