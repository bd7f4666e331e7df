// SPDX-License-Identifier: Apache-2.0
// Whether the machine itself became slower or faster where a detector says so: recorded quiet runs are quiet
// only as far as nobody changed anything on purpose.
#pragma once

#include "agents/timing/timing_run.h"

namespace dynamiccl::agents {

// A change that an alarm may rightly report (docs/guard.md: 10 %).
inline constexpr double kRealChange = 1.1;
// Calls that are compared, on either side.
inline constexpr size_t kAroundAlarm = 200;

// The kAroundAlarm calls from `call` on against as many that end kAroundAlarm before it, between which lies
// what a detector needs to notice: medians of a kind of calls, the median ratio over the kinds, of transfers
// or of transfers with the wait for late ranks, is beyond kRealChange either way. None of the calls that
// raised an alarm at `call` counts but, near the run's begin, where the first half of what came before is
// taken.
bool ReallyChanged(const TimingRun& run, size_t call);

// Share of the run's calls, every 50th, at which ReallyChanged says so: what it says where nobody raised an
// alarm.
double ShareReallyChanged(const TimingRun& run);

}  // namespace dynamiccl::agents
