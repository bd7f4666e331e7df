// SPDX-License-Identifier: Apache-2.0
// drift = (real time between the anchors) / (monotonic time between them) - 1. To convert a monotonic time,
// its distance from the first anchor is multiplied by (1 + drift) and added to the real time of that anchor.
#include "traces/format/section_clock.h"

#include <cmath>

namespace dynamiccl {
namespace {

// The Linux kernel slews a clock by 500 ppm at most, so a larger drift means that the clock was set.
constexpr double kMaxDrift = 500e-6;
// Nanoseconds by which anchors may differ in addition, because the two clocks are read one after the other.
constexpr double kReadingNs = 20'000;

}  // namespace

// Without a second anchor, or with an implausible one, the drift stays 0.
SectionClock::SectionClock(const TraceSection& section) : opened_(section.opened) {
  const double monotonic =
      static_cast<double>(TimeBetween(section.closed_at.monotonic_ns, opened_.monotonic_ns));
  const double real = static_cast<double>(TimeBetween(section.closed_at.realtime_ns, opened_.realtime_ns));
  if (!section.closed || monotonic <= 0) return;
  was_set_ = std::abs(real - monotonic) > kMaxDrift * monotonic + kReadingNs;
  if (!was_set_) drift_ = (real - monotonic) / monotonic;
}

int64_t SectionClock::RealTime(int64_t monotonic_ns) const {
  const int64_t elapsed = TimeBetween(monotonic_ns, opened_.monotonic_ns);
  const auto correction = static_cast<int64_t>(std::llround(static_cast<double>(elapsed) * drift_));
  return TimeAfter(TimeAfter(opened_.realtime_ns, elapsed), correction);
}

}  // namespace dynamiccl
