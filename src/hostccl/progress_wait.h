// SPDX-License-Identifier: Apache-2.0
// Says how a progress loop waits if nothing moves: it spins for a moment, then yields, then sleeps on a
// doorbell.
#pragma once

#include <cstdint>

namespace dynamiccl::hostccl {

// In nanoseconds: how long a loop yields before it sleeps. Sleeping and waking up costs about 40 us, so a
// sleep pays only for waits that are clearly longer.
inline constexpr int64_t kYieldNs = 200'000;
// In nanoseconds: how long a call waits on the calling thread before the stream's thread takes over. That
// change of threads costs about as much, because the stream's thread must be woken (20 us) or, if it yields,
// must get its turn on a core.
inline constexpr int64_t kInlinePatienceNs = 20'000;
// In nanoseconds: kInlinePatienceNs for the case that ranks outnumber cores. A peer may then wait for its
// turn on a core behind several ranks, and the stream's thread would be one more that wants a core. Measured
// with 4 ranks on 2 cores: 7.5 us per call with 20 us of patience, 5.4 us with 100 us.
inline constexpr int64_t kCrowdedPatienceNs = 100'000;
constexpr int64_t InlinePatienceNs(bool may_spin) {
  return may_spin ? kInlinePatienceNs : kCrowdedPatienceNs;
}

// The waiting state of one progress loop, a local variable of the loop. The loop calls Reset whenever
// something moved.
class ProgressWait {
 public:
  // `may_spin` says that there is a core for each rank. Without one, spinning takes time from the rank that
  // is awaited. The loop yields until `patience_ns` nanoseconds are over.
  explicit ProgressWait(bool may_spin, int64_t patience_ns = kYieldNs)
      : may_spin_(may_spin), patience_ns_(patience_ns) {}

  void Reset() {
    idle_rounds_ = 0;
    idle_since_ns_ = 0;
  }

  // Called after a round without progress. Returns true while spinning pays; the loop then polls again at
  // once.
  bool Spin() {
    if (!may_spin_ || idle_rounds_ >= kSpinRounds) return false;
    if (++idle_rounds_ > kEagerRounds) __builtin_ia32_pause();
    return true;
  }

  enum class Next {
    kPoll,   // look again at once
    kSleep,  // patience is over: check the peers' health, then sleep
  };
  // Called after a round without progress, once Spin returns false. `arrival_ns` is when a message arrives
  // over an emulated link; kNotPosted for no message.
  Next Idle(int64_t arrival_ns);
  // Returns the nanoseconds since spinning ended.
  int64_t idle_ns() const;
  // Returns the longest time that a sleep may last, in nanoseconds.
  static int64_t SleepNs(int64_t arrival_ns);

 private:
  // Numbers of rounds of spinning, about 2 us in all: the answer of a peer on another core comes within that
  // time or takes much longer. The first rounds have no pause instruction, because a pause takes as long as
  // moving a cache line between cores.
  static constexpr uint64_t kEagerRounds = 30;
  static constexpr uint64_t kSpinRounds = 60;

  bool may_spin_;
  int64_t patience_ns_;
  uint64_t idle_rounds_ = 0;
  int64_t idle_since_ns_ = 0;  // 0: not waiting, or still spinning
};

}  // namespace dynamiccl::hostccl
