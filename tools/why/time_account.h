// SPDX-License-Identifier: Apache-2.0
// Says where a job's time goes, as far as the calls of its ranks show it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/status.h"
#include "src/collective/collective.h"
#include "tools/report/section_scan.h"
#include "traces/format/record_source.h"

namespace dynamiccl {

// All calls of one collective and size on the first rank.
struct CallKind {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_ranks = 2;
  size_t calls = 0;
  double total_ms = 0;
  double median_us = 0;
  double longest_us = 0;

  // Bus bandwidth of the median call in GB/s, as nccl-tests defines it.
  double BusBandwidth() const;
};

// The times that ranks waited inside collectives for the rank that came last.
struct RankWaits {
  // The rank for which the others waited most often (its number in the job), and the share of all calls in
  // which they waited for this rank.
  int32_t late_rank = 0;
  double late_share = 0;
  // Mean over the ranks: the share of the time from a rank's first call to its last in which that rank
  // waited.
  double waited_share = 0;
  size_t calls = 0;
};

// Times of one trace. Shares are of the time from the first rank's first call to the end of its last one.
struct TimeAccount {
  // Share of the time in which a collective ran. Not set if there is one call only, if fewer than 9 of 10
  // calls were timed, or if the times of issue only give an order.
  std::optional<double> busy_share;
  double span_ms = 0;
  // Kinds with times, by total_ms, longest first.
  std::vector<CallKind> kinds;
  // Not set with fewer than two ranks, or with fewer than 16 calls that all ranks timed.
  std::optional<RankWaits> waits;
};

// Reads the times in several passes over `records` and holds none of these in memory. `sections` comes from
// ScanSections with all sections described.
Result<TimeAccount> TimesOf(const RecordSource& records, const std::vector<SectionScan>& sections);

}  // namespace dynamiccl
