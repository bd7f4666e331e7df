// SPDX-License-Identifier: Apache-2.0
// Threads that complete futures and run their callbacks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace dynamiccl::torch_backend {

// Gives each function a thread that does nothing else until the function returns. A function may therefore
// issue calls and wait for these calls or their futures, and callbacks of these futures may do so again.
// Functions that overlap run in no particular order. Any thread may call Run().
class CallbackThreads {
 public:
  // The only instance of the process. Its threads end with the process.
  static CallbackThreads& OfProcess();
  // Returns at once. The function runs on an idle thread, or on a new one if there is none.
  void Run(std::function<void()> function);

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<std::function<void()>> queue_;
  // Number of threads that wait for a function.
  size_t idle_ = 0;
};

}  // namespace dynamiccl::torch_backend
