// SPDX-License-Identifier: Apache-2.0
// Whether the machine itself became slower or faster where a detector raised an alarm. Recorded quiet runs
// are quiet only as far as nobody changed anything on purpose.
#pragma once

#include "studies/agents/timing/timing_run.h"

namespace dynamiccl::agents {

// The ratio of times from which on an alarm is right (docs/guard.md: 10 %).
inline constexpr double kRealChange = 1.1;
// Calls that are compared on either side.
inline constexpr size_t kAroundAlarm = 200;

// Compares the kAroundAlarm calls from `call` on with as many calls that end kAroundAlarm before it; the
// calls between are those that a detector needs to notice a change. The criterion is the median over kinds of
// calls of the ratio of their medians, for transfers and for transfers with the wait for late ranks: true if
// either is off by more than kRealChange. Near the run's start, the first half of the earlier calls is taken
// instead.
bool ReallyChanged(const TimingRun& run, size_t call);

// Share of the run's calls, of which every 50th is tested, for which ReallyChanged is true: its rate where
// nobody raised an alarm.
double ShareReallyChanged(const TimingRun& run);

}  // namespace dynamiccl::agents
