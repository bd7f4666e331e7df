// SPDX-License-Identifier: Apache-2.0
// `dynamiccl sweep --order active`, `random` or `grid`: visits within a budget, with a journal from which a
// killed sweep goes on; and `--rehearse`, the same over a record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/cell_choice.h"
#include "tools/bench/sweep.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct VisitedSweep {
  std::string journal;                  // path, beside the output
  std::string plan;                     // of ReadSweepJournal
  std::vector<std::string> topologies;  // labels
  ChoiceOptions choice;
  double budget_s = 60;  // of all launches together, those before a restart included
  // Runs the ranks of a topology for so many seconds; they append to the journal.
  std::function<Status(size_t topology, double seconds)> launch;
};

// What was measured. The journal is left where something failed, and removed by whoever has written the
// result.
Result<MeasurementFile> VisitTopologies(const VisitedSweep& sweep);

// On a rank: one slice, rank 0 appending to the journal.
Status VisitAsRank(BenchSession& session, const SweepOptions& options, const ChoiceOptions& choice,
                   const std::string& journal);

}  // namespace dynamiccl
