// SPDX-License-Identifier: Apache-2.0
// Computes System::errors by one fit for each rank count that is left out.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "src/base/statistics.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"

namespace dynamiccl {
namespace {

// Least number of measured rank counts: one is left out, and a fit needs two others to extrapolate.
constexpr size_t kLeastCounts = 3;

// Adds the errors at one rank count by collective. `fitted` was fitted without this rank count.
void AddErrors(const System& fitted, std::span<const TimedCell> cells, int n_ranks, System& system) {
  const CollectiveTimes times(fitted, n_ranks);
  std::map<Collective, std::vector<double>> errors;
  for (const TimedCell& cell : cells) {
    if (cell.n_ranks != n_ranks || !FillsNodes(fitted, cell)) continue;
    const double predicted = times.Microseconds(cell.collective, cell.bytes, cell.config);
    if (predicted > 0) errors[cell.collective].push_back(std::fabs(predicted / cell.us - 1));
  }
  for (const auto& [collective, all] : errors)
    system.errors.push_back({collective, n_ranks, static_cast<int>(all.size()), Median(all), Mean(all)});
}

}  // namespace

Status StateErrors(System& system, std::span<const TimedCell> cells, const FitOptions& options) {
  system.errors.clear();
  std::set<int> counts;
  for (const TimedCell& cell : cells) {
    if (FillsNodes(system, cell)) counts.insert(cell.n_ranks);
  }
  if (counts.size() < kLeastCounts) return {};
  for (const int left_out : counts) {
    std::vector<TimedCell> others;
    for (const TimedCell& cell : cells) {
      if (cell.n_ranks != left_out) others.push_back(cell);
    }
    if (RanksPerNode(others) != system.ranks_per_node) continue;
    DYNAMICCL_TRY(const System fitted, FitSystem(system.name, others, options));
    AddErrors(fitted, cells, left_out, system);
  }
  std::stable_sort(system.errors.begin(), system.errors.end(),
                   [](const StatedError& a, const StatedError& b) { return a.collective < b.collective; });
  return {};
}

}  // namespace dynamiccl
