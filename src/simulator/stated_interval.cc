// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/stated_interval.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "src/simulator/closed_form.h"
#include "src/simulator/path_keys.h"

namespace dynamiccl {
namespace {

// The share of measured times that an interval is to contain.
constexpr double kShare = 0.9;

// Identifies the residuals that differ in size and factor only.
using Column = std::tuple<Collective, Algorithm, Protocol, int>;
Column ColumnOf(const Residual& r) {
  return {r.collective, r.algorithm, r.protocol, r.n_ranks};
}

// Returns the share of a residual's variance that stays unknown at this many doublings from the only place
// where the residual is known. For a reach of 1 the unit is the variance of the change over one doubling.
double Unknown(double doublings, double reach) {
  return reach >= 1 ? doublings : 1 - std::pow(reach, 2 * doublings);
}

// Returns the distance half-way between two rank counts of which one is twice the other. Nearer rank counts
// are treated as equally far, because no measured times show how fast a residual changes within a doubling.
double LeastDistance(const System& system) {
  constexpr double kHalf = 0.5;
  return Unknown(kHalf, system.residual_reach) / std::sqrt(Unknown(2 * kHalf, system.residual_reach));
}

// Logarithms of (measured / predicted).
using LogRatios = std::vector<double>;

// Adds the misses of the cells at one size of one column. The cells are predicted without their residual.
void AddMisses(const System& system, size_t residual, std::span<const TimedCell> cells, LogRatios& misses) {
  const Residual left_out = system.residuals[residual];
  System without = system;
  without.residuals.erase(without.residuals.begin() + static_cast<std::ptrdiff_t>(residual));
  const CollectiveConfig config{left_out.algorithm, left_out.protocol, 0};
  const double predicted =
      CollectiveTimes(without, left_out.n_ranks).Microseconds(left_out.collective, left_out.bytes, config);
  for (const TimedCell& cell : cells) {
    const bool same =
        cell.collective == left_out.collective && cell.n_ranks == left_out.n_ranks &&
        cell.bytes == left_out.bytes && cell.config.algorithm == left_out.algorithm &&
        (left_out.algorithm == Algorithm::kUndefined || cell.config.protocol == left_out.protocol);
    if (same && predicted > 0 && FillsNodes(system, cell)) misses.push_back(std::log(cell.us / predicted));
  }
}

}  // namespace

double DistanceFrom(const std::set<int>& measured, int n_ranks, double reach) {
  const auto above = measured.lower_bound(n_ranks);
  if (above != measured.end() && *above == n_ranks) return 0;
  const auto unknown = [&](double doublings) { return Unknown(doublings, reach); };
  const auto doublings = [&](int other) { return std::fabs(std::log2(n_ranks) - std::log2(other)); };
  if (above == measured.end()) return std::sqrt(unknown(doublings(*measured.rbegin())));
  if (above == measured.begin()) return std::sqrt(unknown(doublings(*above)));
  const double down = doublings(*std::prev(above));
  const double up = doublings(*above);
  return std::sqrt(unknown(down) * unknown(up) / unknown(down + up));
}

std::set<int> MeasuredRanks(const System& system, Collective collective) {
  std::set<int> measured;
  for (const Residual& residual : system.residuals) {
    if (residual.collective == collective) measured.insert(residual.n_ranks);
  }
  return measured;
}

StatedInterval& IntervalOf(System& system, Collective collective) {
  const auto stated = std::ranges::find(system.intervals, collective, &StatedInterval::collective);
  if (stated != system.intervals.end()) return *stated;
  return system.intervals.emplace_back(StatedInterval{.collective = collective});
}

std::optional<double> LogWidth(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                               int n_nodes) {
  const auto stated = std::ranges::find(system.intervals, collective, &StatedInterval::collective);
  const std::set<int> measured = MeasuredRanks(system, collective);
  if (stated == system.intervals.end() || measured.empty() || n_nodes != system.NodesFor(n_ranks))
    return std::nullopt;
  const double distance = DistanceFrom(measured, n_ranks, system.residual_reach);
  const double width =
      distance == 0 ? stated->seen : stated->unseen * std::max(distance, LeastDistance(system));
  if (width <= 0) return std::nullopt;
  const bool size_measured = std::ranges::any_of(system.residuals, [&](const Residual& residual) {
    return residual.collective == collective && residual.bytes == bytes;
  });
  return size_measured ? width : std::max(width, stated->seen);
}

std::optional<double> WidthOfNineInTen(std::span<const double> log_ratios) {
  const auto rank = static_cast<size_t>(std::ceil(kShare * static_cast<double>(log_ratios.size() + 1)));
  if (rank > log_ratios.size()) return std::nullopt;
  std::vector<double> widths;
  for (const double ratio : log_ratios) widths.push_back(std::fabs(ratio));
  const auto place = widths.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::ranges::nth_element(widths, place);
  return std::max(*place, kLeastWidth);
}

void StateSeenIntervals(System& system, std::span<const TimedCell> cells) {
  std::map<Column, std::pair<size_t, size_t>> ends;  // the first and the last residual
  for (size_t i = 0; i < system.residuals.size(); ++i) {
    ends.emplace(ColumnOf(system.residuals[i]), std::pair(i, i)).first->second.second = i;
  }
  std::map<Collective, LogRatios> misses;
  for (const auto& [column, range] : ends) {
    for (size_t i = range.first + 1; i < range.second; ++i)
      AddMisses(system, i, cells, misses[std::get<Collective>(column)]);
  }
  for (const auto& [collective, ratios] : misses) {
    const auto width = WidthOfNineInTen(ratios);
    if (!width) continue;
    StatedInterval& stated = IntervalOf(system, collective);
    stated.seen = *width;
    stated.seen_cells = static_cast<int>(ratios.size());
  }
}

}  // namespace dynamiccl
