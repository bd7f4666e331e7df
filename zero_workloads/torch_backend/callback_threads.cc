// SPDX-License-Identifier: Apache-2.0
// A pool of threads without an upper bound: with a bound, callbacks that wait for each other's calls could
// occupy all threads.
#include "zero_workloads/torch_backend/callback_threads.h"

#include <thread>
#include <utility>

namespace dynamiccl::torch_backend {

CallbackThreads& CallbackThreads::OfProcess() {
  static auto* const instance = new CallbackThreads;  // never freed: its threads are detached
  return *instance;
}

void CallbackThreads::Run(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(function));
    if (queue_.size() <= idle_) {
      queued_.notify_one();
      return;
    }
  }
  std::thread([this] { Serve(); }).detach();
}

void CallbackThreads::Serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    queued_.wait(lock, [this] { return !queue_.empty(); });
    --idle_;
    std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    function();
    function = nullptr;  // destroying the function may take locks, so it happens without the mutex
    lock.lock();
  }
}

}  // namespace dynamiccl::torch_backend
