// SPDX-License-Identifier: Apache-2.0
// A sweep that measures one cell (a config for one collective and size) after the other until its time is
// spent, in the order that ChooseNext gives. It continues from what earlier runs measured.
#pragma once

#include <functional>

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"

namespace dynamiccl {

// Result of one visit, in which a cell is timed kVisitRepeats times.
struct CellVisit {
  // The measured times of one call, kVisitRepeats of them. All ranks have the same values.
  std::vector<float> microseconds;
  // Seconds that measuring the cell took, equal on all ranks.
  double seconds = 0;
};

// Gives the times of cells: measured by the ranks of a library (sweep.cc) or read from a recorded sweep
// (rehearsed_sweep.cc).
class CellTimer {
 public:
  virtual ~CellTimer() = default;
  // Times the cell with this index.
  virtual Result<CellVisit> Take(size_t cell) = 0;
  // Replaces `values` by those of rank 0. They must not be negative. This is needed because all ranks must
  // measure the same cells, but machines may compute expected gains that differ in the last bit.
  virtual Status TakeFirstRanks(std::vector<double>& values) = 0;
};

// Says how a sweep ended.
struct ChosenSweepResult {
  // Seconds spent on measuring cells.
  double seconds = 0;
  // Value of NextCells::promise at the end: the gain that another second of measuring would promise.
  double promise = 0;
  // True: every cell was timed as often as the options ask.
  bool complete = false;
};

// Measures cells until `budget_s` seconds are spent or every cell is done. `samples` holds the known times
// and receives the new ones. `visited` is called after each measured cell, before the next one; its error
// ends the sweep.
Result<ChosenSweepResult> MeasureChosen(const std::vector<PricedCell>& cells, const ChoiceOptions& options,
                                        double budget_s, CellTimer& timer,
                                        std::vector<std::vector<float>>& samples,
                                        const std::function<Status(size_t, const CellVisit&)>& visited);

}  // namespace dynamiccl
