// SPDX-License-Identifier: Apache-2.0
// How a rank sleeps until a peer has posted something: a futex word in shared memory that costs the poster no
// system call while nobody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace dynamiccl {

// Whether other processes' barriers reach this one.
class BarrierRegistration {
 public:
  // Any number of times; a child of fork() that will post does it anew.
  static void Register();
  static bool mine() { return registered_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<bool> registered_{false};
};

// Lives in shared memory, zero-initialised.
//   sleeper: Arm(), look once more for work, then Sleep() or Disarm()
//   poster:  publish the work by a release store, then Ring()
// Between publishing and the look at `sleepers` stands a full fence, as between Arm's store and the look for
// work: so either the sleeper sees the work or the poster sees the sleeper. The poster's fence waits until
// the other core has given up every line that was written, which is a good part of a small message's time.
// Where the system has membarrier(2), a sleeper whose posters have registered makes it for them: sleeping is
// rare and slow anyway.
struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> sleeper_fences{0};  // 1: Arm makes the fence of registered processes

  void Ring() {
    if (sleeper_fences.load(std::memory_order_relaxed) == 0 || !BarrierRegistration::mine()) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    if (sleepers.load(std::memory_order_relaxed) != 0) Wake();
  }

  // By the process that sleeps on it, before it does; leaves the fences to the posters where the system has
  // no barrier.
  void FenceForPosters();

  // The value to hand to Sleep().
  uint32_t Arm();
  void Disarm() { sleepers.fetch_sub(1, std::memory_order_relaxed); }
  // Returns after a ring since Arm(), at `timeout_ns` or spuriously; disarms.
  void Sleep(uint32_t armed, int64_t timeout_ns);

 private:
  void Wake();
};

}  // namespace dynamiccl
