// SPDX-License-Identifier: Apache-2.0
// Sums up where the time of a simulated rank went, by the role of its collectives.
#pragma once

#include <string>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/simulator/event_simulation.h"

namespace dynamiccl {

// Role, kind and size of one collective. A vector of labels is indexed by the collective's number in the
// program.
struct CollectiveLabel {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
};

// Sums over all collectives of one role and kind.
struct SummaryRow {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  // Sum of the times from start to end of each collective. The collectives may overlap.
  int64_t running_ns = 0;
  // Time in which the rank waited for these collectives.
  int64_t exposed_ns = 0;
};

// Rows sorted by role and collective.
std::vector<SummaryRow> Summarize(const RankTiming& rank, const std::vector<CollectiveLabel>& labels);
// Formats the rows as a table for people, with a header line.
std::string FormatSummary(const RankTiming& rank, const std::vector<SummaryRow>& rows);

}  // namespace dynamiccl
