// SPDX-License-Identifier: Apache-2.0
// A lane is an algorithm that runs on one channel: a C++20 coroutine that suspends where it must wait for a
// peer. One thread polls all lanes of a launch in turn (launch.h), so a lane must never block this thread.
//
//   Lane Example(Primitives& primitives, const ChannelWork& work) {
//     co_await primitives.Send(work.send, count);  // suspends while the peer has no free slot
//     co_await primitives.Recv(work.recv, count);  // suspends until the data have arrived
//   }
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "src/transport/connection.h"

namespace dynamiccl::hostccl {

// The operation for which a suspended lane waits. The lane points to this object but does not own it.
class Awaited {
 public:
  virtual ~Awaited() = default;

  // Moves data as far as possible. Returns true when the lane may continue.
  virtual bool Advance() = 0;
  // Number of pieces moved so far. The progress loop compares two values to see whether something moved.
  uint64_t pieces_moved() const { return pieces_moved_; }
  // Returns when to poll again: the time at which a message arrives over an emulated link, or kNotPosted.
  int64_t next_arrival_ns() const { return next_arrival_ns_; }

 protected:
  uint64_t pieces_moved_ = 0;
  int64_t next_arrival_ns_ = kNotPosted;
};

// Owns the frame of a coroutine and destroys it. A Lane can be moved but not copied. One thread at a time may
// use it.
class Lane {
 public:
  // C++ requires a coroutine to have this type and its functions. `awaited` is set each time the lane
  // suspends.
  struct promise_type {
    Lane get_return_object() { return Lane(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    // An algorithm cannot throw, so this is never called. Only the allocation of its frame can throw, and
    // that happens before the algorithm starts.
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
  // Runs the lane until its next wait or its end. Call it only while the lane is not done.
  void Resume() { handle_.resume(); }
  // Returns the operation for which the lane waits; null before its first wait. Call it only while the lane
  // is not done.
  Awaited* awaited() const { return handle_.promise().awaited; }
  // Continues the lane if its wait is over. Returns true if anything moved. Call it only while the lane is
  // not done.
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

// Base class of operations that live in the frame of the lane that waits for them.
class AwaitedInLane : public Awaited {
 public:
  bool await_ready() { return Advance(); }
  void await_suspend(Lane::Handle lane) { lane.promise().awaited = this; }
  void await_resume() const {}
};

// Runs another algorithm as part of a lane: co_await SubLane(...).
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
