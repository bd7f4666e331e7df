// SPDX-License-Identifier: Apache-2.0
// Detects whether a call is inside a communicator that is being given up, without an interlocked instruction
// in the call. Instead, the thread that gives up the communicator makes the stores and loads of all threads
// visible in order, through the system call membarrier.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace dynamiccl {

// Each communicator has one. NCCL's contract orders the communicator's calls. If a group on one thread still
// overlaps with calls on another, `any` stays true, because neither thread can tell any more which one leaves
// last.
class InFlightCalls {
 public:
  // Issuing thread. `thread` is an address that is unique to the thread. Returns false if the communicator is
  // gone.
  bool Enter(const void* thread) {
    const void* const before = inside_.load(std::memory_order_relaxed);
    if (before != nullptr && before != thread) several_.store(true, std::memory_order_relaxed);
    inside_.store(thread, std::memory_order_relaxed);
    // This fence keeps the compiler from changing the order of stores and loads. FenceAllThreads does the
    // same for the processor.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return !closed_.load(std::memory_order_relaxed);
  }
  void Leave() { inside_.store(nullptr, std::memory_order_release); }

  // Any thread: no call may enter from now on.
  void Close() { closed_.store(true); }
  // Orders the stores and loads of all threads; one call serves any number of closed objects. Returns false
  // if the system cannot do it; then `any` is not reliable.
  static bool FenceAllThreads() {
    return Register() && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  }
  // Registers the process for FenceAllThreads, once. While the process has one thread this takes a
  // microsecond; later the system waits for all processors, some 10 ms. Returns false if the system cannot do
  // it.
  static bool Register() {
    static const bool registered =
        ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return registered;
  }
  // Returns true if a call may still be inside. Call it after Close and FenceAllThreads.
  bool any() const {
    return inside_.load(std::memory_order_acquire) != nullptr || several_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<const void*> inside_{nullptr};
  std::atomic<bool> several_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace dynamiccl
