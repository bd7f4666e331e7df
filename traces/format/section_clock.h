// SPDX-License-Identifier: Apache-2.0
// The clock of one section against real time, so that records of several ranks can be put on one axis.
#pragma once

#include <cstdint>

#include "traces/format/trace.h"

namespace dynamiccl {

// Linear between the section's two anchors (opened, closed_at), which takes skew and drift of the process'
// own clock away. What is left: how far the real-time clocks of the hosts are apart, and the reading of an
// anchor, two clock reads apart (below 1 us). With one anchor (a killed process) no drift is known and none
// is corrected.
class SectionClock {
 public:
  explicit SectionClock(const TraceSection& section);

  // CLOCK_REALTIME, ns, of a time of the section's CLOCK_MONOTONIC.
  int64_t RealTime(int64_t monotonic_ns) const;
  // Of real time against the section's clock: 1e-5 is 10 us a second.
  double drift() const { return drift_; }
  // Real time was set while the process ran: the anchors are further apart than any clock drifts. Then only
  // the first one is used.
  bool was_set() const { return was_set_; }

 private:
  ClockAnchor opened_;
  double drift_ = 0;
  bool was_set_ = false;
};

// a - b, modulo 2^64: times of a damaged or foreign file may be anything.
inline int64_t TimeBetween(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t TimeAfter(int64_t a, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(by));
}

}  // namespace dynamiccl
