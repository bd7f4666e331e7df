// SPDX-License-Identifier: Apache-2.0
// Interpolates residuals between measured rank counts; a column holds the residuals of one rank count.
//
// Below the least and above the largest rank count, the nearest column's residual counts, multiplied by
// residual_reach for each doubling. Above the largest, the straight line through the times of the two largest
// columns has a share too: line_share at the largest column, fading in the same way. It is 0 where one of the
// two columns lies inside a node and the asked rank count does not. Between two columns their residuals are
// weighted; each weight fades in the same way and is 1 at its own column (Weight). The share 1 -
// formula_share of the formulas' curvature between the columns is subtracted. At formula_share 0 this leaves
// a straight line between the measured times, in logarithms of ranks and time.
#include "src/simulator/residual_surface.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dynamiccl {
namespace {

// Interpolates linearly between the points; outside of them, the nearest value counts.
double Interpolated(const std::vector<double>& places, const std::vector<double>& values, double place) {
  const auto above = std::lower_bound(places.begin(), places.end(), place);
  if (above == places.begin()) return values.front();
  if (above == places.end()) return values.back();
  const auto i = static_cast<size_t>(above - places.begin());
  const double share = (place - places[i - 1]) / (places[i] - places[i - 1]);
  return values[i - 1] + share * (values[i] - values[i - 1]);
}

}  // namespace

ResidualSurface::ResidualSurface(const System& system, Collective collective, const CollectiveConfig& config)
    : system_(system), collective_(collective), config_(config) {
  for (const Residual& residual : system.residuals) {
    if (residual.collective != collective || residual.algorithm != config.algorithm ||
        residual.protocol != config.protocol)
      continue;
    auto found = columns_.find(std::log2(residual.n_ranks));
    if (found == columns_.end()) {
      CollectiveTimes formulas(system, residual.n_ranks, 0, CollectiveTimes::Residuals::kIgnored);
      Column column{residual.n_ranks, std::move(formulas), {}, {}};
      found = columns_.emplace(std::log2(residual.n_ranks), std::move(column)).first;
    }
    const auto bytes = static_cast<double>(std::max<uint64_t>(1, residual.bytes));
    found->second.log2_bytes.push_back(std::log2(bytes));
    found->second.values.push_back(residual.log_factor);
  }
}

double ResidualSurface::Weight(double near, double far) const {
  const double reach = system_.residual_reach;
  if (reach >= 1) return far / (near + far);
  return std::pow(reach, near) * (1 - std::pow(reach, 2 * far)) / (1 - std::pow(reach, 2 * (near + far)));
}

// Returns the log of the formulas' time; 0 if the formulas know no path, so that the curvature is 0 too.
double ResidualSurface::LogFormula(const CollectiveTimes& formulas, double bytes) const {
  const double time =
      formulas.Microseconds(collective_, static_cast<uint64_t>(std::max(1.0, bytes)), config_);
  return time > 0 ? std::log(time) : 0;
}

// Looks a size up in one column. If cliffs of this size keep their bytes per rank, the size is scaled to the
// column's rank count.
ResidualSurface::Seen ResidualSurface::See(const Column& column, int n_ranks, uint64_t bytes) const {
  // Cliffs of large messages have the same bytes per rank at every rank count (System::drift_bytes_per_rank).
  const bool drifts = system_.drift_bytes_per_rank > 0 &&
                      bytes / static_cast<uint64_t>(n_ranks) >= system_.drift_bytes_per_rank;
  const double there =
      static_cast<double>(bytes) * (drifts ? static_cast<double>(column.n_ranks) / n_ranks : 1);
  return {.residual = Interpolated(column.log2_bytes, column.values, std::log2(std::max(1.0, there))),
          .log_formula = LogFormula(column.formulas, there)};
}

// Blends what the nearest column's residual says with the straight line through its time and its neighbour's,
// whose share fades with the distance.
double ResidualSurface::Beyond(const Columns::const_iterator nearest, const CollectiveTimes& here,
                               int n_ranks, uint64_t bytes) const {
  const double distance = std::log2(n_ranks) - nearest->first;
  const double kept = std::pow(system_.residual_reach, std::fabs(distance));
  const Seen near = See(nearest->second, n_ranks, bytes);
  const double faded = kept * near.residual;
  if (distance < 0 || nearest == columns_.begin()) return faded;
  const auto second = std::prev(nearest);
  // A time inside one node says nothing of the network.
  const bool on_one_node = second->second.n_ranks <= system_.ranks_per_node;
  if (on_one_node != (n_ranks <= system_.ranks_per_node)) return faded;
  const Seen far = See(second->second, n_ranks, bytes);
  const double slope = (near.LogTime() - far.LogTime()) / (nearest->first - second->first);
  const double line = near.LogTime() + slope * distance - LogFormula(here, static_cast<double>(bytes));
  const double share = kept * system_.line_share;
  return (1 - share) * faded + share * line;
}

double ResidualSurface::At(const CollectiveTimes& here, int n_ranks, uint64_t bytes) const {
  if (columns_.empty()) return 0;
  const double place = std::log2(n_ranks);
  const auto above = columns_.lower_bound(place);
  if (above == columns_.begin() || above == columns_.end()) {
    return Beyond(above == columns_.end() ? std::prev(above) : above, here, n_ranks, bytes);
  }
  const auto below = std::prev(above);
  const double share = (place - below->first) / (above->first - below->first);
  const Seen low = See(below->second, n_ranks, bytes);
  const Seen high = See(above->second, n_ranks, bytes);
  const double chord = (1 - share) * low.log_formula + share * high.log_formula;
  const double bend = LogFormula(here, static_cast<double>(bytes)) - chord;
  const double down = place - below->first;
  const double up = above->first - place;
  return Weight(down, up) * low.residual + Weight(up, down) * high.residual -
         (1 - system_.formula_share) * bend;
}

}  // namespace dynamiccl
