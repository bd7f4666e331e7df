// SPDX-License-Identifier: Apache-2.0
// Whether a call is inside a communicator that is being given up, without an interlocked instruction in the
// call. Instead, the thread that gives the communicator up has the system let all threads' stores and loads
// settle (membarrier).
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace dynamiccl {

// One of each communicator. NCCL's contract orders the calls. A group on one thread with calls on another is
// noticed, and makes `any` true for good, since neither can tell any more when it was the last one inside.
class CallsInside {
 public:
  // The issuing thread; `thread` is an address that no other thread has. False: the communicator is gone.
  bool Enter(const void* thread) {
    const void* const before = inside_.load(std::memory_order_relaxed);
    if (before != nullptr && before != thread) several_.store(true, std::memory_order_relaxed);
    inside_.store(thread, std::memory_order_relaxed);
    // For the compiler; the processor's order is Settle's.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return !closed_.load(std::memory_order_relaxed);
  }
  void Leave() { inside_.store(nullptr, std::memory_order_release); }

  // Any thread: nobody comes in from here on.
  void Close() { closed_.store(true); }
  // Once for any number of them that are closed. False: the system cannot do it, and nobody knows.
  static bool Settle() {
    static const bool registered =
        ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return registered && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  }
  // After Close and Settle.
  bool any() const {
    return inside_.load(std::memory_order_acquire) != nullptr || several_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<const void*> inside_{nullptr};
  std::atomic<bool> several_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace dynamiccl
