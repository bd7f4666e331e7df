// SPDX-License-Identifier: Apache-2.0
// A futex word in shared memory on which a rank sleeps until a peer has posted something. While nobody
// sleeps, ringing costs no system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace dynamiccl {

// Lives in shared memory and starts as zeros. Any number of threads and processes may ring or sleep.
//   sleeper: Arm(), look once more for work, then Sleep() or Disarm()
//   poster:  publish the work by a release store, then Ring()
// A full fence stands between publishing the work and reading `sleepers`. Another one stands between Arm's
// store and the second look for work. So either the sleeper sees the work or the poster sees the sleeper.
//
// The sleeper could make both fences with membarrier(2). Measured that way, small messages gained nothing
// beyond the noise, and sleepers woke up later.
struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleepers{0};

  void Ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_relaxed) != 0) Wake();
  }

  // Announces that this thread is about to sleep. Returns the value to pass to Sleep().
  uint32_t Arm();
  // Withdraws the announcement of Arm(); for a sleeper that found work at its second look.
  void Disarm() { sleepers.fetch_sub(1, std::memory_order_relaxed); }
  // Sleeps until a ring after Arm() or until `timeout_ns` nanoseconds have passed; it may also return without
  // a reason. Then withdraws the announcement of Arm().
  void Sleep(uint32_t armed, int64_t timeout_ns);

 private:
  void Wake();
};

}  // namespace dynamiccl
