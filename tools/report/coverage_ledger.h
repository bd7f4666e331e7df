// SPDX-License-Identifier: Apache-2.0
// How much of a job's communication a tuner could change at all, and what decides the rest: the first thing
// to know about a job.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/collective/coverage.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

struct CoveredCalls {
  int64_t calls = 0;
  uint64_t bytes = 0;  // NCCL's totals
  double ns = 0;       // estimated from the timed calls
};

// Of the communication time that a tuner could change: what the program waits for.
struct ExposedTime {
  double known_ns = 0;   // of keys of which it is known
  double waited_ns = 0;  // of that
};

struct CoverageLedger {
  std::array<CoveredCalls, kCoverages> of{};
  CoveredCalls total;
  ExposedTime exposed;
  int64_t estimated_calls = 0;  // whose time is known from themselves or from a timed call like them
};

// A call without a time of its own gets the mean of the timed calls of its communicator, collective and
// bytes; where there is none it has no time, and `estimated_calls` says how many have one.
// Shares of a key that was recognised in several roles count alike.
CoverageLedger LedgerOf(const SectionCalls& section);

// "tunable 96 % of the communication time; pinned 3 %, point_to_point 1 %", largest first. In bytes where not
// every call has a time, and it says so. Where it is known what the program waits for: "; the program waits
// for 40 % of the tunable time". Empty without calls.
std::string Describe(const CoverageLedger& ledger);
Json ToJson(const CoverageLedger& ledger);

}  // namespace dynamiccl
