// SPDX-License-Identifier: Apache-2.0
// Visits one cell after the other until the budget is spent, as ChooseNext says. Goes on from what was
// measured before.
#pragma once

#include <functional>

#include "src/base/status.h"
#include "tools/bench/cell_choice.h"

namespace dynamiccl {

struct CellVisit {
  std::vector<float> microseconds;  // kVisitRepeats times of a call, equal on all ranks
  double seconds = 0;               // what the visit took, equal on all ranks
};

// What measures: a library's ranks, or a record of them.
class CellTimer {
 public:
  virtual ~CellTimer() = default;
  virtual Result<CellVisit> Take(size_t cell) = 0;
  // Replaces `values` by rank 0's: machines may disagree about the last bit of a promise, and all ranks must
  // visit the same cells.
  virtual Status TakeFirstRanks(std::vector<double>& values) = 0;
};

struct ChosenSweepResult {
  double seconds = 0;
  double promise = 0;     // NextCells::promise at the end
  bool complete = false;  // every cell has all repeats
};

// `samples` holds what is known before and after. `visited` is told each visit before the next begins.
Result<ChosenSweepResult> MeasureChosen(const std::vector<PricedCell>& cells, const ChoiceOptions& options,
                                        double budget_s, CellTimer& timer,
                                        std::vector<std::vector<float>>& samples,
                                        const std::function<Status(size_t, const CellVisit&)>& visited);

}  // namespace dynamiccl
