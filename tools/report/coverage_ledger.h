// SPDX-License-Identifier: Apache-2.0
// Accounts for how much of a job's communication a tuner could change at all, and what decides the rest. This
// bounds what a policy can gain, so it is the first thing to know about a job.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/collective/coverage.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// Sums over the calls of one kind.
struct CoveredCalls {
  int64_t calls = 0;
  // NCCL's totals (docs/glossary.md, bytes).
  uint64_t bytes = 0;
  // Nanoseconds, partly estimated from timed calls.
  double ns = 0;
};

// The communication time that a tuner could change, and the part of it that is exposed: the program waits for
// these calls.
struct ExposedTime {
  // Time of calls whose key has a measured share of exposed time.
  double known_ns = 0;
  // The exposed part of known_ns.
  double waited_ns = 0;
  // The part of known_ns in calls whose latency is critical: gathers of parameters that the program waits
  // for.
  double critical_ns = 0;
};

// Sums by coverage: tunable, pinned by the user, point-to-point and so on (Coverage names all). Invariant:
// `total` is the sum of `of`.
struct CoverageLedger {
  std::array<CoveredCalls, kCoverages> of{};
  CoveredCalls total;
  ExposedTime exposed;
  // Calls whose time is known, either measured or from a timed call like them.
  int64_t estimated_calls = 0;
};

// Returns the ledger of one process. A call that was not timed gets the mean of the timed calls with the same
// communicator, collective and bytes. If there are none, the call counts without time. A key that was
// recognised in several roles gets the mean of the exposed shares of these roles.
CoverageLedger LedgerOf(const SectionCalls& section);

// One line such as "tunable 96.0 % of the communication time; pinned 3.0 %, point_to_point 1.0 %", largest
// share first. It counts bytes where not every call has a time, and then says so. Where the exposed share is
// known, "; the program waits for 40 % of the tunable time" follows. Empty without calls.
std::string Describe(const CoverageLedger& ledger);
// Sums by coverage in calls, bytes and seconds; coverages without calls are left out.
Json ToJson(const CoverageLedger& ledger);

}  // namespace dynamiccl
