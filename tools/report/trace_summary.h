// SPDX-License-Identifier: Apache-2.0
// A trace in numbers: how often each collective was called, in which ZeRO stage, in how many steps, and who
// decided.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/report/coverage_ledger.h"
#include "tools/report/demo_result.h"
#include "tools/report/json_output.h"
#include "tools/report/section_scan.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Number of calls, and the sum of their sizes. A call's size is the one by which NCCL chooses: of an
// AllGather or a ReduceScatter that of all ranks' parts together, of an AllReduce that of one rank's buffer.
struct CallCount {
  int64_t calls = 0;
  uint64_t bytes = 0;
};

// Numbers of the trace's first section, the recording of one process (rank 0 of a merged trace), since all
// ranks issue the same collectives. `missing`, `closed`, `mirrored`, `order_only` and
// `groups_unknown` are about all sections.
struct TraceSummary {
  size_t sections = 0;
  std::string library;
  int64_t calls = 0;
  MissingRecords missing;
  // True: every process ended properly. False after a crash or a kill.
  bool closed = true;
  // True: some section is the recording of one rank that stands for all ranks.
  bool mirrored = false;
  // True: the times of issue were not measured; they only give the order of the calls.
  bool order_only = false;
  // True: the file of another tool did not state the sizes of some groups, which stand here with 1 rank.
  bool groups_unknown = false;
  // Number of training steps that the program marked.
  int64_t steps = 0;
  // Smallest number of free bytes on the device that the program reported; 0: the program reported nothing.
  uint64_t least_free_bytes = 0;
  // Bytes of memory that the device has; 0: the program did not report it.
  uint64_t memory_bytes = 0;
  // ZeRO stage that the program labelled; -1 if it labelled none or several.
  int stage = -1;
  CoverageLedger coverage;
  std::map<std::string, CallCount> collectives;
  // Number of calls of each (collective, bytes).
  std::map<std::pair<std::string, uint64_t>, int64_t> sizes;
  // Number of calls of each (decider, config).
  std::map<std::pair<std::string, std::string>, int64_t> decisions;
};

// Counts calls by collective, size and decision.
class SummaryCounts {
 public:
  void Take(const TraceCall& call);
  void AddTo(TraceSummary& summary) const;

 private:
  std::map<std::pair<Collective, uint64_t>, int64_t> sizes_;
  // By decider and config.
  std::map<std::tuple<DecidedBy, Algorithm, Protocol, uint8_t>, int64_t> decisions_;
};

// Returns what a scan tells about a trace, and the counts and the ledger of its first section.
TraceSummary SummaryOf(const std::vector<SectionScan>& sections, const SummaryCounts& counts,
                       const CoverageLedger& ledger);

// Summarises a trace without keeping its records.
Result<TraceSummary> ReadSummary(const RecordSource& source);

// Summarises a trace in one pass over the calls of its first section, the recording of one process.
TraceSummary SummarizeTrace(const Trace& trace);
// Summarises a trace whose first section's calls the caller has already (`first`, empty for a trace without
// sections).
TraceSummary SummarizeTrace(const Trace& trace, const SectionCalls& first);
// The summary as JSON, including `path`, the path of the trace.
Json SummaryJson(const std::string& path, const TraceSummary& summary);

}  // namespace dynamiccl
