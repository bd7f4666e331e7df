// SPDX-License-Identifier: Apache-2.0
// A trace in numbers: what was called how often, in which stage and step, and who decided what.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/report/coverage_ledger.h"
#include "tools/report/demo_result.h"
#include "tools/report/json_output.h"
#include "traces/format/trace.h"

namespace dynamiccl {

struct CallCount {
  int64_t calls = 0;
  uint64_t bytes = 0;
};

// Of the first section (rank 0 of a merged trace): all ranks issue the same collectives.
struct TraceSummary {
  size_t sections = 0;
  std::string library;
  int64_t calls = 0;
  uint64_t lost = 0;
  bool closed = true;  // every process ended in order
  bool mirrored = false;
  int64_t steps = 0;              // steps that the program marked
  uint64_t least_free_bytes = 0;  // of the device, where the program told of its memory
  uint64_t memory_bytes = 0;      // the device's; 0: it did not
  int stage = -1;                 // labelled ZeRO stage, -1 without one label or with several
  CoverageLedger coverage;
  std::map<std::string, CallCount> collectives;
  std::map<std::pair<std::string, uint64_t>, int64_t> sizes;         // (collective, bytes) -> calls
  std::map<std::pair<std::string, std::string>, int64_t> decisions;  // (decided by, config) -> calls
};

TraceSummary SummarizeTrace(const Trace& trace);
// `first`: the calls of the first section; none without sections.
TraceSummary SummarizeTrace(const Trace& trace, const SectionCalls& first);
Json SummaryJson(const std::string& path, const TraceSummary& summary);

}  // namespace dynamiccl
