// SPDX-License-Identifier: Apache-2.0
// Where a simulated rank's time went, by what its collectives were for.
#pragma once

#include <string>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/simulator/event_simulation.h"

namespace dynamiccl {

// What a collective of a program was, by its number there.
struct CollectiveLabel {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
};

struct SummaryRow {
  Role role = Role::kUnknown;
  Collective collective = Collective::kAllReduce;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  int64_t running_ns = 0;  // from the start to the end of each; they may overlap
  int64_t exposed_ns = 0;  // the rank waited
};

std::vector<SummaryRow> Summarize(const RankTiming& rank, const std::vector<CollectiveLabel>& labels);
// A table for people, with a header line.
std::string FormatSummary(const RankTiming& rank, const std::vector<SummaryRow>& rows);

}  // namespace dynamiccl
