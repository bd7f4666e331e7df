// SPDX-License-Identifier: Apache-2.0
// Puts the times of one section on the real-time axis, so that records of several ranks can be compared.
#pragma once

#include <cstdint>

#include "traces/format/trace.h"

namespace dynamiccl {

// Converts the times of one section. The conversion is linear between the section's two anchors (opened,
// closed_at), which removes offset and drift of the process's own clock. Two errors remain: the difference
// between the real-time clocks of the hosts, and the reading of an anchor, which takes two clock reads (below
// 1 us). A killed process leaves only one anchor; the drift is then unknown and not corrected.
class SectionClock {
 public:
  explicit SectionClock(const TraceSection& section);

  // CLOCK_REALTIME in nanoseconds for a time of the section's CLOCK_MONOTONIC.
  int64_t RealTime(int64_t monotonic_ns) const;
  // Drift of real time against the section's clock: 1e-5 is 10 us per second.
  double drift() const { return drift_; }
  // True if the real-time clock was set while the process ran: the anchors differ by more than any drift
  // explains. In this case only the first anchor is used.
  bool was_set() const { return was_set_; }

 private:
  ClockAnchor opened_;
  double drift_ = 0;
  bool was_set_ = false;
};

// a - b and a + by, modulo 2^64. The times of a damaged or foreign file may have any value and must not
// overflow.
inline int64_t TimeBetween(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t TimeAfter(int64_t a, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(by));
}

}  // namespace dynamiccl
