// SPDX-License-Identifier: Apache-2.0
// Computes System::errors and System::intervals by one fit for each rank count that is left out.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "src/base/statistics.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"
#include "src/simulator/stated_interval.h"

namespace dynamiccl {
namespace {

// Least number of measured rank counts: one is left out, and a fit needs two others to extrapolate.
constexpr size_t kLeastCounts = 3;
// Logarithms of measured over predicted time, divided by the distance of the cell's rank count.
using Misses = std::map<Collective, std::vector<double>>;

// Adds the errors at one rank count by collective. `fitted` was fitted without this rank count. `reach` is
// the residual_reach by which the widths are used later.
void AddErrors(const System& fitted, std::span<const TimedCell> cells, int n_ranks, double reach,
               System& system, Misses& misses) {
  const CollectiveTimes times(fitted, n_ranks);
  std::map<Collective, std::vector<double>> errors;
  for (const TimedCell& cell : cells) {
    if (cell.n_ranks != n_ranks || !FillsNodes(fitted, cell)) continue;
    const double predicted = times.Microseconds(cell.collective, cell.bytes, cell.config);
    if (predicted <= 0) continue;
    errors[cell.collective].push_back(std::fabs(predicted / cell.us - 1));
    const std::set<int> measured = MeasuredRanks(fitted, cell.collective);
    if (measured.size() < kLeastCounts - 1) continue;
    misses[cell.collective].push_back(std::log(cell.us / predicted) / DistanceFrom(measured, n_ranks, reach));
  }
  for (const auto& [collective, all] : errors)
    system.errors.push_back({collective, n_ranks, static_cast<int>(all.size()), Median(all), Mean(all)});
}

void AddUnseenIntervals(const Misses& misses, System& system) {
  for (const auto& [collective, all] : misses) {
    const auto width = WidthOfNineInTen(all);
    if (!width) continue;
    StatedInterval& stated = IntervalOf(system, collective);
    stated.unseen = *width;
    stated.unseen_cells = static_cast<int>(all.size());
  }
}

}  // namespace

Status StateErrors(System& system, std::span<const TimedCell> cells, const FitOptions& options) {
  system.errors.clear();
  system.intervals.clear();
  std::set<int> counts;
  for (const TimedCell& cell : cells) {
    if (FillsNodes(system, cell)) counts.insert(cell.n_ranks);
  }
  if (counts.size() < kLeastCounts) counts.clear();
  Misses misses;
  for (const int left_out : counts) {
    std::vector<TimedCell> others;
    for (const TimedCell& cell : cells) {
      if (cell.n_ranks != left_out) others.push_back(cell);
    }
    if (RanksPerNode(others) != system.ranks_per_node) continue;
    DYNAMICCL_TRY(const System fitted, FitSystem(system.name, others, options));
    AddErrors(fitted, cells, left_out, system.residual_reach, system, misses);
  }
  StateSeenIntervals(system, cells);
  AddUnseenIntervals(misses, system);
  std::stable_sort(system.errors.begin(), system.errors.end(),
                   [](const StatedError& a, const StatedError& b) { return a.collective < b.collective; });
  return {};
}

}  // namespace dynamiccl
