// SPDX-License-Identifier: Apache-2.0
// Decides whether the bandwidths in a file can show which of its durations are damaged.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Counts the durations that can be checked against a bandwidth beside them, and those that contradict it.
struct BandwidthCheck {
  uint64_t checkable = 0;
  uint64_t contradictory = 0;

  // True if the file computes its bandwidths in another way or unit, so that none should be checked.
  // Contradictions do not show this if only one or two durations can be checked.
  bool MostContradict() const { return checkable >= 3 && 2 * contradictory > checkable; }
};

}  // namespace dynamiccl
