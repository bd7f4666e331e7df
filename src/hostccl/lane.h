// SPDX-License-Identifier: Apache-2.0
// An algorithm at work on one channel: a coroutine that suspends where it must wait for a peer. Lanes are
// polled in turn by one thread (launch.h); a lane never blocks it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "src/transport/connection.h"

namespace dynamiccl::hostccl {

// What a suspended lane waits for.
class Awaited {
 public:
  virtual ~Awaited() = default;

  // Goes as far as it can; true when the lane may go on.
  virtual bool Advance() = 0;
  // Grows with every piece moved: how the progress loop sees that something happened.
  uint64_t pieces_moved() const { return pieces_moved_; }
  // When to look again: kNotPosted, or the arrival of a message that is on an emulated link.
  int64_t next_arrival_ns() const { return next_arrival_ns_; }

 protected:
  uint64_t pieces_moved_ = 0;
  int64_t next_arrival_ns_ = kNotPosted;
};

class Lane {
 public:
  struct promise_type {
    Lane get_return_object() { return Lane(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    // Algorithms call nothing that throws but memory allocation of their frame, before they start.
    void unhandled_exception() { std::terminate(); }

    Awaited* awaited = nullptr;
  };
  using Handle = std::coroutine_handle<promise_type>;

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
  // What it waits for; null before the first wait. Only while not done.
  Awaited* awaited() const { return handle_.promise().awaited; }
  // Goes on if what it waits for has come; whether anything moved. Only while not done.
  bool Poll() {
    Awaited* const wait = awaited();
    if (wait != nullptr) {
      const uint64_t before = wait->pieces_moved();
      if (!wait->Advance()) return wait->pieces_moved() != before;
    }
    Resume();
    return true;
  }

 private:
  explicit Lane(Handle handle) : handle_(handle) {}

  Handle handle_;
};

// Base of awaitables that live in the frame of the lane that awaits them.
class AwaitedInLane : public Awaited {
 public:
  bool await_ready() { return Advance(); }
  void await_suspend(Lane::Handle lane) { lane.promise().awaited = this; }
  void await_resume() const {}
};

// co_await SubLane(...): another algorithm as a part of this one.
class SubLane final : public AwaitedInLane {
 public:
  explicit SubLane(Lane lane) : lane_(std::move(lane)) {}

  bool Advance() override {
    while (!lane_.done()) {
      const bool moved = lane_.Poll();
      if (moved) ++pieces_moved_;
      if (lane_.done()) break;
      next_arrival_ns_ = lane_.awaited()->next_arrival_ns();
      if (!moved) return false;
    }
    return true;
  }

 private:
  Lane lane_;
};

}  // namespace dynamiccl::hostccl
