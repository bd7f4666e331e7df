// SPDX-License-Identifier: Apache-2.0
// Repeats three steps: choose the next cells, agree on them among the ranks, and measure them.
#include "tools/bench/chosen_sweep.h"

namespace dynamiccl {
namespace {

// Replaces this rank's choice of cells by rank 0's choice: first the number of cells, then the cells.
Status Agree(CellTimer& timer, NextCells& next) {
  std::vector<double> count{static_cast<double>(next.cells.size()), next.promise};
  DYNAMICCL_CHECK_OK(timer.TakeFirstRanks(count));
  std::vector<double> cells(next.cells.begin(), next.cells.end());
  cells.resize(static_cast<size_t>(count[0]));
  DYNAMICCL_CHECK_OK(timer.TakeFirstRanks(cells));
  next.cells.assign(cells.begin(), cells.end());
  next.promise = count[1];
  return {};
}

}  // namespace

Result<ChosenSweepResult> MeasureChosen(const std::vector<PricedCell>& cells, const ChoiceOptions& options,
                                        double budget_s, CellTimer& timer,
                                        std::vector<std::vector<float>>& samples,
                                        const std::function<Status(size_t, const CellVisit&)>& visited) {
  ChosenSweepResult result;
  while (true) {
    NextCells next = ChooseNext(cells, samples, options);
    DYNAMICCL_CHECK_OK(Agree(timer, next));
    result.promise = next.promise;
    result.complete = next.cells.empty();
    if (result.complete) return result;
    for (const size_t cell : next.cells) {
      if (result.seconds >= budget_s) return result;
      DYNAMICCL_TRY(const CellVisit visit, timer.Take(cell));
      samples[cell].insert(samples[cell].end(), visit.microseconds.begin(), visit.microseconds.end());
      result.seconds += visit.seconds;
      DYNAMICCL_CHECK_OK(visited(cell, visit));
    }
  }
}

}  // namespace dynamiccl
