// SPDX-License-Identifier: Apache-2.0
// `dynamiccl sweep --order active`, `random` or `grid`: visits within a budget, with a journal from which a
// killed sweep continues.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/cell_choice.h"
#include "tools/bench/sweep.h"
#include "tools/bench/sweep_progress.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// One sweep by visits. A visit times some repeats of one config for one collective and size.
struct VisitedSweep {
  // Path of the journal, beside the output.
  std::string journal;
  // Text that the journal must have to be continued (ReadSweepJournal).
  std::string plan;
  // Labels of the topologies.
  std::vector<std::string> topologies;
  ChoiceOptions choice;
  // Seconds of all launches together, including those before a restart.
  double budget_s = 60;
  // Runs the ranks on a topology for this many seconds; rank 0 appends the results to the journal. After this
  // launch, `later_s` seconds of the budget are left.
  std::function<Status(size_t topology, double seconds, double later_s)> launch;
};

// Launches the ranks again and again until the budget is spent, and returns what was measured. After a
// failure the journal stays; the caller removes it once the result is written.
Result<MeasurementFile> VisitTopologies(const VisitedSweep& sweep);

// Runs on each rank of one launch (a slice of the budget). Rank 0 appends to the journal and shows the
// progress.
Status VisitAsRank(BenchSession& session, const SweepOptions& options, const ChoiceOptions& choice,
                   const std::string& journal, SweepProgress& progress);

}  // namespace dynamiccl
