// SPDX-License-Identifier: Apache-2.0
// Where a simulated rank's time went, by the purpose of its collectives.
#pragma once

#include <string>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/simulator/event_simulation.h"

namespace dynamiccl {

// Role, kind and size of one collective of a program; labels are indexed by the collective's number.
struct CollectiveLabel {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
};

// Sums over the collectives of one role and kind.
struct SummaryRow {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  // From start to end of each collective; they may overlap.
  int64_t running_ns = 0;
  // Time in which the rank waited for them.
  int64_t exposed_ns = 0;
};

// Rows sorted by role and collective.
std::vector<SummaryRow> Summarize(const RankTiming& rank, const std::vector<CollectiveLabel>& labels);
// A table for people, with a header line.
std::string FormatSummary(const RankTiming& rank, const std::vector<SummaryRow>& rows);

}  // namespace dynamiccl
