// SPDX-License-Identifier: Apache-2.0
// nccl-tests' option -T: ends the process when a row takes too long, since a collective that hangs never
// returns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace dynamiccl {

// A watcher thread that exits the process when the limit passes. Restart and the destructor must be called on
// the thread that made the object.
class RowDeadline {
 public:
  // Starts a thread that ends the process once a row takes longer than `limit`. Zero means no limit and no
  // thread.
  explicit RowDeadline(std::chrono::seconds limit);
  ~RowDeadline();
  // Starts the time limit anew. Call it when a row is done.
  void Restart();

 private:
  // Runs on the watcher thread. Prints an error and ends the process at the deadline.
  void Watch();

  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point end_;
  bool done_ = false;
  std::thread watcher_;
};

}  // namespace dynamiccl
