// SPDX-License-Identifier: Apache-2.0
// How a progress loop waits when nothing moves: a moment of spinning, then yields, then sleep on a doorbell.
#pragma once

#include <cstdint>

namespace dynamiccl::hostccl {

class ProgressWait {
 public:
  // `may_spin`: there is a core for each rank. Without one, every spin takes time from the rank that is
  // waited for.
  explicit ProgressWait(bool may_spin) : may_spin_(may_spin) {}

  void Reset() { idle_rounds_ = 0; }

  enum class Next {
    kPoll,   // look again at once
    kSleep,  // long idle: check the peers' health, then sleep
  };
  // After a round without progress. `arrival_ns`: when a message on an emulated link arrives, kNotPosted for
  // none.
  Next Idle(int64_t arrival_ns);
  // Since the first idle round.
  int64_t idle_ns() const;
  // How long a sleep may last at most.
  static int64_t SleepNs(int64_t arrival_ns);

 private:
  bool may_spin_;
  uint64_t idle_rounds_ = 0;
  int64_t idle_since_ns_ = 0;
};

// Cores that this process may use.
int UsableCores();

}  // namespace dynamiccl::hostccl
