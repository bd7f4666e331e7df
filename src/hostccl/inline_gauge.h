// SPDX-License-Identifier: Apache-2.0
// Decides whether a call should be tried on the calling thread. A call that runs there saves waking the
// stream's thread, about 20 us. A call whose peers are late gives up after about the same time
// (progress_wait.h), and that time is wasted.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dynamiccl::hostccl {

// If peers are usually late, as when one thread drives several ranks in turn, the gauge makes attempts rare:
// after each failure it skips twice as many calls as before, plus one, up to 63. After one success every call
// is tried again. Each communicator has one gauge, which one thread at a time may use.
class InlineGauge {
 public:
  // Returns true if this call should be tried on the calling thread. Call it once for each call that could
  // run there.
  bool Try() {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  // The caller reports that its attempt succeeded.
  void NoteDone() { next_skip_ = 0; }
  // The caller reports that its attempt gave up.
  void NoteGivenUp() {
    skip_ = next_skip_;
    next_skip_ = std::min(kMaxSkip, 2 * next_skip_ + 1);
  }

 private:
  // The most calls that are skipped between two attempts. One attempt of 20 us in 64 calls takes less time
  // than 64 launches.
  static constexpr uint32_t kMaxSkip = 63;

  uint32_t skip_ = 0;
  uint32_t next_skip_ = 0;  // 0: the last attempt succeeded
};

}  // namespace dynamiccl::hostccl
