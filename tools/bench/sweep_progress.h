// SPDX-License-Identifier: Apache-2.0
// Tells the user on standard error how far a sweep is and how long it will still take.
#pragma once

#include <string>

#include "src/base/progress_line.h"
#include "tools/bench/sweep.h"

namespace dynamiccl {

// One part of a sweep: the topology that is measured now. A sweep launches its ranks anew for each topology.
struct SweepPart {
  std::string label;
  int number = 1;
  int count = 1;
  // Seconds that the sweep of this topology may take, and seconds that the sweeps of all later topologies are
  // expected to take.
  double budget_s = 0;
  double later_s = 0;
};

// Returns the sweep's progress as text: "2 of 14: two-nodes-ethernet: round 2 of 4, about 50 s left". While
// the first topology is measured, the others are expected to take as long as it does.
std::string SweepProgressText(const SweepPart& part, const SweepPosition& position);
// Returns a sentence for the user if the first round shows that the sweep will take more than a tenth longer
// than its budget; else an empty text.
std::string OverBudgetText(const SweepPart& part, const SweepPosition& position);

// Shows the progress of one part, the sweep of one topology. Rank 0 of that part's ranks owns it.
class SweepProgress {
 public:
  explicit SweepProgress(SweepPart part) : part_(std::move(part)), line_(ProgressLine::OnStandardError()) {}

  void Show(const SweepPosition& position);
  // Shows the progress of a sweep that measures one cell at a time: `visits` cells were measured so far, and
  // `left_s` seconds of this part are left.
  void ShowVisits(int visits, double left_s);
  // Removes the progress line. Call it before anything else is written to the terminal.
  void Clear() { line_.Clear(); }

 private:
  const SweepPart part_;
  ProgressLine line_;
};

}  // namespace dynamiccl
