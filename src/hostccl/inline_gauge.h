// SPDX-License-Identifier: Apache-2.0
// Whether running a call inline is worth trying.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dynamiccl::hostccl {

// A call that gives up has cost its caller the patience for nothing. Where ranks come late as a rule, as when
// one thread drives several ranks in turn, the attempts become rare; one that succeeds makes them the rule
// again. One a communicator.
class InlineGauge {
 public:
  // Once a call that could run inline.
  bool Try() {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void NoteDone() { next_skip_ = 0; }
  void NoteGivenUp() {
    skip_ = next_skip_;
    next_skip_ = std::min(kMaxSkip, 2 * next_skip_ + 1);
  }

 private:
  // 20 us of patience every 64 calls are below what 64 launches cost.
  static constexpr uint32_t kMaxSkip = 63;

  uint32_t skip_ = 0;
  uint32_t next_skip_ = 0;  // 0: the last attempt succeeded
};

}  // namespace dynamiccl::hostccl
