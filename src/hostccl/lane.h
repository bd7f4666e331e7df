// SPDX-License-Identifier: Apache-2.0
// An algorithm at work on one channel: a coroutine that suspends where a primitive must wait for a peer.
// Lanes are polled in turn by one thread (executor.h); a lane never blocks it.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace dynamiccl::hostccl {

class Lane {
 public:
  struct promise_type {
    Lane get_return_object() { return Lane(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    // Algorithms call nothing that throws but memory allocation of their frame, before they start.
    void unhandled_exception() { std::terminate(); }
  };

  Lane() = default;
  Lane(Lane&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Lane& operator=(Lane&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Lane() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return !handle_ || handle_.done(); }
  // Runs until the next wait or the end. Only while not done.
  void Resume() { handle_.resume(); }

 private:
  explicit Lane(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace dynamiccl::hostccl
