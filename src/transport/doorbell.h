// SPDX-License-Identifier: Apache-2.0
// How a rank sleeps until a peer has posted something: a futex word in shared memory that costs the poster no
// system call while nobody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace dynamiccl {

// Lives in shared memory, zero-initialised.
//   sleeper: Arm(), look once more for work, then Sleep() or Disarm()
//   poster:  publish the work by a release store, then Ring()
// Between publishing and the look at `sleepers` stands a full fence, as between Arm's store and the look for
// work: so either the sleeper sees the work or the poster sees the sleeper. The sleeper could make both with
// membarrier(2); that was measured: small messages gained nothing that stood out of the noise, and whoever
// slept woke up later.
struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleepers{0};

  void Ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_relaxed) != 0) Wake();
  }

  // The value to hand to Sleep().
  uint32_t Arm();
  void Disarm() { sleepers.fetch_sub(1, std::memory_order_relaxed); }
  // Returns after a ring since Arm(), at `timeout_ns` or spuriously; disarms.
  void Sleep(uint32_t armed, int64_t timeout_ns);

 private:
  void Wake();
};

}  // namespace dynamiccl
