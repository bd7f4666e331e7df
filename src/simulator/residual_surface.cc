// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/residual_surface.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dynamiccl {

ResidualSurface::ResidualSurface(const System& system, Collective collective, Algorithm algorithm,
                                 Protocol protocol)
    : drift_(system.residual_drift) {
  std::map<int, std::map<uint64_t, double>> cells;
  for (const Residual& residual : system.residuals) {
    if (residual.collective != collective || residual.algorithm != algorithm || residual.protocol != protocol)
      continue;
    cells[residual.n_ranks][residual.bytes] = residual.log_factor;
  }
  for (const auto& [ranks, sizes] : cells) {
    Column& column = columns_[std::log2(ranks)];
    for (const auto& [bytes, value] : sizes) {
      column.log2_bytes.push_back(std::log2(static_cast<double>(std::max<uint64_t>(1, bytes))));
      column.values.push_back(value);
    }
  }
}

double ResidualSurface::AtSize(const Column& column, double log2_bytes) {
  const auto above = std::lower_bound(column.log2_bytes.begin(), column.log2_bytes.end(), log2_bytes);
  if (above == column.log2_bytes.begin()) return column.values.front();
  if (above == column.log2_bytes.end()) return column.values.back();
  const auto i = static_cast<size_t>(above - column.log2_bytes.begin());
  const double share =
      (log2_bytes - column.log2_bytes[i - 1]) / (column.log2_bytes[i] - column.log2_bytes[i - 1]);
  return column.values[i - 1] + share * (column.values[i] - column.values[i - 1]);
}

double ResidualSurface::At(int n_ranks, double log2_bytes) const {
  if (columns_.empty()) return 0;
  const double place = std::log2(n_ranks);
  const auto in_column = [&](const auto& entry) {
    return AtSize(entry->second, log2_bytes + drift_ * (entry->first - place));
  };
  const auto above = columns_.lower_bound(place);
  if (above == columns_.begin()) return in_column(above);
  const auto below = std::prev(above);
  if (above == columns_.end()) return in_column(below);
  const double share = (place - below->first) / (above->first - below->first);
  return (1 - share) * in_column(below) + share * in_column(above);
}

}  // namespace dynamiccl
