// SPDX-License-Identifier: Apache-2.0
// Decides whether bandwidths of a file can show which of its times are damaged.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Counts the times that a bandwidth beside them can show to be wrong, and those that it contradicts.
struct BandwidthCheck {
  uint64_t checkable = 0;
  uint64_t contradictory = 0;

  // True if the file computes its bandwidths in another way or unit, so that none should be checked. One or
  // two contradictions among one or two times do not show this.
  bool MostContradict() const { return checkable >= 3 && 2 * contradictory > checkable; }
};

}  // namespace dynamiccl
