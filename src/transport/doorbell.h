// SPDX-License-Identifier: Apache-2.0
// How a rank sleeps until a peer has posted something: a futex word in shared memory that costs the poster no
// system call while nobody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace dynamiccl {

// Lives in shared memory, zero-initialised.
//   sleeper: Arm(), look once more for work, then Sleep() or Disarm()
//   poster:  publish the work by a seq_cst store, then Ring()
// All four accesses are in one total order, so either the sleeper sees the work or the poster sees the
// sleeper.
struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleepers{0};

  void Ring() {
    if (sleepers.load(std::memory_order_seq_cst) != 0) Wake();
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
