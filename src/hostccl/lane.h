// SPDX-License-Identifier: Apache-2.0
// An algorithm that runs on one channel: a C++20 coroutine that suspends where it must wait for a peer. One
// thread polls all lanes of a launch in turn (launch.h); a lane never blocks that thread.
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

// A suspended lane waits for an object of this type. The lane only points to the object and does not own it.
class Awaited {
 public:
  virtual ~Awaited() = default;

  // Goes as far as it can; returns true when the lane may continue.
  virtual bool Advance() = 0;
  // Number of pieces moved. The progress loop sees by it that something happened.
  uint64_t pieces_moved() const { return pieces_moved_; }
  // Returns when to poll again: the arrival of a message on an emulated link, or kNotPosted.
  int64_t next_arrival_ns() const { return next_arrival_ns_; }

 protected:
  uint64_t pieces_moved_ = 0;
  int64_t next_arrival_ns_ = kNotPosted;
};

// Owns the frame of a coroutine and destroys it. Movable, not copyable; one thread at a time.
class Lane {
 public:
  // The C++ language requires this type and its functions of a coroutine. `awaited` is set at each
  // suspension.
  struct promise_type {
    Lane get_return_object() { return Lane(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    // In an algorithm only the allocation of its frame can throw, and that happens before the algorithm
    // starts.
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
  // Runs until the next wait or the end. Call it only while not done.
  void Resume() { handle_.resume(); }
  // Returns what the lane waits for; null before its first wait. Call it only while not done.
  Awaited* awaited() const { return handle_.promise().awaited; }
  // Continues if the lane's wait is over. Returns true if anything moved. Call it only while not done.
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

// co_await SubLane(...) runs another algorithm as part of this one.
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
