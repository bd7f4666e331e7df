// SPDX-License-Identifier: Apache-2.0
// A sweep that visits one cell after the other until the budget is spent, in the order that ChooseNext gives.
// It continues from what was measured before.
#pragma once

#include <functional>

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"

namespace dynamiccl {

// Result of one visit.
struct CellVisit {
  // The kVisitRepeats times that were measured for one call. All ranks have the same values.
  std::vector<float> microseconds;
  // Duration of the visit, equal on all ranks.
  double seconds = 0;
};

// The source of times: the ranks of a library (sweep.cc) or a record of them (rehearsed_sweep.cc).
class CellTimer {
 public:
  virtual ~CellTimer() = default;
  // Visits the cell with this index.
  virtual Result<CellVisit> Take(size_t cell) = 0;
  // Replaces `values`, which must not be negative, by those of rank 0. All ranks must visit the same cells,
  // but machines may compute expected gains that differ in the last bit.
  virtual Status TakeFirstRanks(std::vector<double>& values) = 0;
};

// Result of a sweep.
struct ChosenSweepResult {
  // Seconds spent in visits.
  double seconds = 0;
  // NextCells::promise at the end.
  double promise = 0;
  // Every cell has all repeats.
  bool complete = false;
};

// Runs until `budget_s` seconds are spent or every cell is done. `samples` holds the known times and receives
// the new ones. `visited` is called after each visit, before the next begins; its error ends the sweep.
Result<ChosenSweepResult> MeasureChosen(const std::vector<PricedCell>& cells, const ChoiceOptions& options,
                                        double budget_s, CellTimer& timer,
                                        std::vector<std::vector<float>>& samples,
                                        const std::function<Status(size_t, const CellVisit&)>& visited);

}  // namespace dynamiccl
