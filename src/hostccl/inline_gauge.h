// SPDX-License-Identifier: Apache-2.0
// Decides whether a call should be tried on the calling thread. A call that runs inline saves waking the
// stream's thread, about 20 us; a call that gives up has wasted its patience, which is as long
// (progress_wait.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace dynamiccl::hostccl {

// If ranks usually come late, as when one thread drives several ranks in turn, the gauge makes attempts rare:
// after each failure it skips twice as many calls as before, plus one, up to 63. After one success every call
// is tried again. Each communicator has one gauge; one thread at a time.
class InlineGauge {
 public:
  // Call it once for each call that could run inline. Returns true if the call should be tried.
  bool Try() {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  // Reports that the attempt succeeded.
  void NoteDone() { next_skip_ = 0; }
  // Reports that the attempt gave up.
  void NoteGivenUp() {
    skip_ = next_skip_;
    next_skip_ = std::min(kMaxSkip, 2 * next_skip_ + 1);
  }

 private:
  // Calls. One attempt of 20 us in 64 calls costs less than 64 launches.
  static constexpr uint32_t kMaxSkip = 63;

  uint32_t skip_ = 0;
  uint32_t next_skip_ = 0;  // 0: the last attempt succeeded
};

}  // namespace dynamiccl::hostccl
