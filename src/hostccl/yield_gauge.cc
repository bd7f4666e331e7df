// SPDX-License-Identifier: Apache-2.0
// The yield gauge and its thresholds. See yield_gauge.h.
#include "src/hostccl/yield_gauge.h"

#include <sched.h>

#include <cstdint>

#include "src/base/clock.h"

namespace dynamiccl::hostccl {
namespace {

// In nanoseconds: a yield that takes longer gave the core to another program. This is more than the longest
// yield among hostccl's own threads, and less than the shortest time slice of the scheduler.
constexpr int64_t kStrangerNs = 1'000'000;
// Number of sleeps after a yield that gave the core to another program. At 40 us each, they cost about as
// much as the one long yield that they avoid.
constexpr int kSleepsAfterStranger = 100;

}  // namespace

YieldGauge& YieldGauge::Mine() {
  static thread_local YieldGauge gauge;
  return gauge;
}

void YieldGauge::Yield() {
  const int64_t start = MonotonicNanoseconds();
  ::sched_yield();
  if (MonotonicNanoseconds() - start > kStrangerNs) sleeps_left_ = kSleepsAfterStranger;
}

}  // namespace dynamiccl::hostccl
