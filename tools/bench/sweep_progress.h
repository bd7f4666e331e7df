// SPDX-License-Identifier: Apache-2.0
// Tells the user on standard error how far a sweep is and how long it will still take.
#pragma once

#include <string>

#include "src/base/progress_line.h"
#include "tools/bench/sweep.h"

namespace dynamiccl {

// The topology that is measured now, among all launches of a sweep.
struct SweepPart {
  std::string label;
  int number = 1;
  int count = 1;
  // Seconds that this part may take, and seconds that all later parts are expected to take.
  double budget_s = 0;
  double later_s = 0;
};

// Returns the sweep's progress as text: "2 of 14: two-nodes-ethernet: round 2 of 4, about 50 s left". While
// the first part is measured, the others are expected to take as long.
std::string SweepProgressText(const SweepPart& part, const SweepPosition& position);
// A sentence for the user when the first round shows that the sweep will take more than a tenth longer than
// its budget; else empty.
std::string OverBudgetText(const SweepPart& part, const SweepPosition& position);

// Shows the progress of one part. Rank 0 of the part's launch owns it.
class SweepProgress {
 public:
  explicit SweepProgress(SweepPart part) : part_(std::move(part)), line_(ProgressLine::OnStandardError()) {}

  void Show(const SweepPosition& position);
  // For a sweep by visits: `visits` are done, and `left_s` seconds of this part are left.
  void ShowVisits(int visits, double left_s);
  // Removes the progress line. Call it before anything else is written to the terminal.
  void Clear() { line_.Clear(); }

 private:
  const SweepPart part_;
  ProgressLine line_;
};

}  // namespace dynamiccl
