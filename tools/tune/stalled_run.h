// SPDX-License-Identifier: Apache-2.0
// Tells a run of the job that hung from one that the time limit ended while it still trained. Both end at the
// limit, and both may have recorded enough steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/format/trace.h"

namespace dynamiccl {

// Tells when a run issued calls. Times are nanoseconds of CLOCK_REALTIME, which hosts share.
struct RunCalls {
  // Time of the last call of any rank; 0: no call was recorded.
  int64_t last_ns = 0;
  // The longest time between two consecutive calls in the second half of a rank's calls. Between its first
  // calls a program may load data or compile for minutes.
  int64_t longest_pause_ns = 0;
  // Time at which the run ended by itself or reached its limit.
  int64_t ended_ns = 0;
};

// Returns the calls of all processes of a run that ended at `ended_ns`.
RunCalls CallsOfRun(const std::vector<Trace>& traces, int64_t ended_ns);

// Says in one sentence how a run stood still until its limit; empty if it did not. `base` is the run of the
// unchanged job. A pause counts as a hang only if it exceeds all of these: twice the longest pause of the
// unchanged job, twice the time from that job's last call to its end, ten steps, and two seconds.
std::string WhyStalled(const RunCalls& run, const RunCalls& base, int64_t step_ns);

}  // namespace dynamiccl
