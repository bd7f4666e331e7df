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

// Number of calls and NCCL's total bytes.
struct CallCount {
  int64_t calls = 0;
  uint64_t bytes = 0;
};

// Numbers of the first section (rank 0 of a merged trace), since all ranks issue the same collectives. The
// fields about loss and end cover all sections.
struct TraceSummary {
  size_t sections = 0;
  std::string library;
  int64_t calls = 0;
  uint64_t lost = 0;
  // Every process ended in order; false after a crash or a kill.
  bool closed = true;
  // Some section was recorded on one rank only and mirrored to the others.
  bool mirrored = false;
  // Times of issue were not measured and only order the calls.
  bool order_only = false;
  // Steps that the program marked.
  int64_t steps = 0;
  // Smallest amount of free memory on the device, where the program reported its memory.
  uint64_t least_free_bytes = 0;
  // The device's memory; 0: the program did not report it.
  uint64_t memory_bytes = 0;
  // Labelled ZeRO stage; -1 when no stage or several were labelled.
  int stage = -1;
  CoverageLedger coverage;
  std::map<std::string, CallCount> collectives;
  // Calls by (collective, bytes).
  std::map<std::pair<std::string, uint64_t>, int64_t> sizes;
  // Calls by (decided by, config).
  std::map<std::pair<std::string, std::string>, int64_t> decisions;
};

// Summarises a trace in one pass over the first section's calls.
TraceSummary SummarizeTrace(const Trace& trace);
// Does the same with the calls of the first section, for a caller that has them already. `first` is empty for
// a trace without sections.
TraceSummary SummarizeTrace(const Trace& trace, const SectionCalls& first);
// The summary as JSON; `path` is copied into it.
Json SummaryJson(const std::string& path, const TraceSummary& summary);

}  // namespace dynamiccl
