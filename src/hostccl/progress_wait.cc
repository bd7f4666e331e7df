// SPDX-License-Identifier: Apache-2.0
// The steps of waiting. See progress_wait.h.
#include "src/hostccl/progress_wait.h"

#include <algorithm>

#include "src/base/clock.h"
#include "src/hostccl/yield_gauge.h"
#include "src/transport/connection.h"

namespace dynamiccl::hostccl {
namespace {

// In nanoseconds. No sleep lasts longer, so that an abort, a dead peer or the time-out is noticed.
constexpr int64_t kMaxSleepNs = 1'000'000;
// In nanoseconds: how late a timed sleep may end. The sleep is shortened by this time, and the loop yields
// until the arrival.
constexpr int64_t kTimerSlackNs = 80'000;

}  // namespace

ProgressWait::Next ProgressWait::Idle(int64_t arrival_ns) {
  if (Spin()) return Next::kPoll;
  if (idle_since_ns_ == 0) idle_since_ns_ = MonotonicNanoseconds();
  YieldGauge& gauge = YieldGauge::Mine();
  const bool long_wait = arrival_ns == kNotPosted ? idle_ns() > patience_ns_ : SleepNs(arrival_ns) > 0;
  if (long_wait || gauge.crowded()) return Next::kSleep;
  gauge.Yield();
  return Next::kPoll;
}

int64_t ProgressWait::idle_ns() const {
  return MonotonicNanoseconds() - idle_since_ns_;
}

int64_t ProgressWait::SleepNs(int64_t arrival_ns) {
  if (arrival_ns == kNotPosted) return kMaxSleepNs;
  const int64_t early = YieldGauge::Mine().crowded() ? 0 : kTimerSlackNs;
  return std::clamp<int64_t>(arrival_ns - early - MonotonicNanoseconds(), 0, kMaxSleepNs);
}

}  // namespace dynamiccl::hostccl
