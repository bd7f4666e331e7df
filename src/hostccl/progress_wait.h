// SPDX-License-Identifier: Apache-2.0
// How a progress loop waits when nothing moves: a moment of spinning, then yields, then sleep on a doorbell.
#pragma once

#include <cstdint>

namespace dynamiccl::hostccl {

// Sleeping and being woken costs about 40 us, so it pays for waits that are clearly longer.
inline constexpr int64_t kYieldNs = 200'000;
// What a caller waits inside its call before the stream's thread takes over: about what that costs, the
// wake-up of a sleeping thread (20 us) or a place in the round of yields.
inline constexpr int64_t kInlinePatienceNs = 20'000;

class ProgressWait {
 public:
  // `may_spin`: there is a core for each rank. Without one, every spin takes time from the rank that is
  // waited for. Yields until `patience_ns` are over.
  explicit ProgressWait(bool may_spin, int64_t patience_ns = kYieldNs)
      : may_spin_(may_spin), patience_ns_(patience_ns) {}

  void Reset() {
    idle_rounds_ = 0;
    idle_since_ns_ = 0;
  }

  enum class Next {
    kPoll,   // look again at once
    kSleep,  // patience is over: check the peers' health, then sleep
  };
  // After a round without progress. `arrival_ns`: when a message on an emulated link arrives, kNotPosted for
  // none.
  Next Idle(int64_t arrival_ns);
  // Since the spinning ended.
  int64_t idle_ns() const;
  // How long a sleep may last at most.
  static int64_t SleepNs(int64_t arrival_ns);

 private:
  bool may_spin_;
  int64_t patience_ns_;
  uint64_t idle_rounds_ = 0;
  int64_t idle_since_ns_ = 0;  // 0: not waiting, or still spinning
};

// Cores that this process may use.
int UsableCores();

}  // namespace dynamiccl::hostccl
