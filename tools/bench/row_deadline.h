// SPDX-License-Identifier: Apache-2.0
// nccl-tests' -T: ends the process when a row takes too long, for a collective that hangs returns to nobody.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace dynamiccl {

// Restart and destruction from the thread that made it.
class RowDeadline {
 public:
  // Zero: no limit, no thread.
  explicit RowDeadline(std::chrono::seconds limit);
  ~RowDeadline();
  // A row is done, the next begins.
  void Restart();

 private:
  void Watch();

  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point end_;
  bool done_ = false;
  std::thread watcher_;
};

}  // namespace dynamiccl
