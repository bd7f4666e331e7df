// SPDX-License-Identifier: Apache-2.0
// Whether the machine itself became slower or faster where a detector raised an alarm. In recorded quiet runs
// nobody changed anything on purpose, but the machine may still have changed.
#pragma once

#include "studies/agents/timing/timing_run.h"

namespace dynamiccl::agents {

// The ratio of times from which on an alarm is right (docs/guard.md: 10 %).
inline constexpr double kRealChange = 1.1;
// Number of calls that are compared on each side of the alarm.
inline constexpr size_t kAroundAlarm = 200;

// Compares the kAroundAlarm calls from `call` on with as many calls that end kAroundAlarm calls before it. A
// detector needs the calls in between to notice a change. The criterion is the median over kinds of calls of
// the ratio of their medians. It is computed for transfers, and for transfers with the wait for late ranks.
// The answer is true if one of the two is off by more than kRealChange. Near the run's start, the first half
// of the earlier calls is taken for the comparison.
bool ReallyChanged(const TimingRun& run, size_t call);

// Share of the run's calls for which ReallyChanged is true. Every 50th call is tested. It is the rate of
// changes where nobody raised an alarm.
double ShareReallyChanged(const TimingRun& run);

}  // namespace dynamiccl::agents
