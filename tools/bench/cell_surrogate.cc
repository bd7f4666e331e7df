// SPDX-License-Identifier: Apache-2.0
// Predicts times by Gaussian process regression (Rasmussen and Williams 2006, algorithm 2.1).
//
// A cell is a config for one collective and size. Its residual is log2 of its time over the cost model's
// estimate. Let L be the Cholesky factor of the covariance matrix of the measured cells, noise included. Let
// y be their residuals, and k(x) the vector of covariances between a cell x and each of them. Then
// explained(x) = L^-1 k(x), mean(x) = explained(x) . L^-1 y, and covariance(x, x') = k(x, x') - explained(x)
// . explained(x').
#include "tools/bench/cell_surrogate.h"

#include <algorithm>
#include <cmath>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Standard deviations, in octaves, of the parts of a residual (log2 of measured time over the cost model's
// estimate). The cost model is wrong by a factor of 2.8 on emulated links, mostly by the same factor for all
// sizes of an algorithm and protocol; the number of channels matters less.
constexpr double kCommon = 2.0;
constexpr double kOfSize = 0.3;
constexpr double kOfAlgorithm = 0.7;
constexpr double kOfPair = 0.7;
constexpr double kOfChannels = 0.4;
// Standard deviation of a single timed repeat on a busy machine, in octaves.
constexpr double kNoise = 0.2;
// Distances over which residuals stay similar: in octaves of bytes, and in octaves of the number of channels.
constexpr double kSizeLength = 3.0;
constexpr double kChannelLength = 1.5;

// Correlation of two cells at the positions `a` and `b`: a squared exponential of their distance divided by
// `length`.
double Alike(double a, double b, double length) {
  const double distance = (a - b) / length;
  return std::exp(-0.5 * distance * distance);
}

// Covariance of two cells of one collective before any measurement. It is a sum of parts: one common to all
// cells, one by size, and parts shared only by cells of the same algorithm, the same protocol and similar
// channels.
double Kernel(const PricedCell& a, const PricedCell& b) {
  const double size = Alike(std::log2(static_cast<double>(a.cell.bytes) + 1),
                            std::log2(static_cast<double>(b.cell.bytes) + 1), kSizeLength);
  double sum = kCommon * kCommon + kOfSize * kOfSize * size;
  if (a.config.algorithm != b.config.algorithm) return sum;
  sum += kOfAlgorithm * kOfAlgorithm * size;
  if (a.config.protocol != b.config.protocol) return sum;
  const double channels =
      Alike(std::log2(a.config.channels + 1.0), std::log2(b.config.channels + 1.0), kChannelLength);
  return sum + size * (kOfPair * kOfPair + kOfChannels * kOfChannels * channels);
}

// Returns the median in microseconds, but at least 1e-3, because its logarithm is needed.
double Microseconds(const std::vector<float>& samples) {
  return std::max(Median(samples), 1e-3);
}

double Dot(const std::vector<double>& a, const std::vector<double>& b, size_t length) {
  double sum = 0;
  for (size_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

using Rows = std::vector<std::vector<double>>;

// Solves lower * x = right by forward substitution.
std::vector<double> SolveLower(const Rows& lower, std::vector<double> right) {
  for (size_t i = 0; i < right.size(); ++i) right[i] = (right[i] - Dot(lower[i], right, i)) / lower[i][i];
  return right;
}

// Returns the lower Cholesky factor of the covariance of the measured cells, noise included. The floor of
// 1e-9 keeps rounding errors from making the diagonal negative.
Rows Cholesky(const std::vector<PricedCell>& cells, const std::vector<size_t>& measured,
              const std::vector<std::vector<float>>& samples) {
  Rows lower(measured.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    lower[i].resize(i + 1);
    for (size_t j = 0; j < i; ++j) {
      const double covariance = Kernel(cells[measured[i]], cells[measured[j]]);
      lower[i][j] = (covariance - Dot(lower[i], lower[j], j)) / lower[j][j];
    }
    const double own =
        Kernel(cells[measured[i]], cells[measured[i]]) + CellSurrogate::NoiseOf(samples[measured[i]].size());
    lower[i][i] = std::sqrt(std::max(own - Dot(lower[i], lower[i], i), 1e-9));
  }
  return lower;
}

}  // namespace

PricedCell PriceCell(const CostModelInput& model, const PlannedCell& cell, const CollectiveConfig& config) {
  const double estimate = EstimateCost(model, cell.collective, cell.bytes, config);
  const double slow_us = 10 + static_cast<double>(cell.bytes) * 1e-3;  // 1 GB/s
  return {cell, config, estimate > 0 ? estimate : slow_us};
}

Measurement RowOf(const std::string& topology, const PricedCell& cell, std::vector<float> microseconds) {
  return {topology,    cell.cell.collective,   cell.cell.bytes,
          cell.config, cell.cell.is_default(), std::move(microseconds)};
}

bool IsOf(const Measurement& row, const PricedCell& cell) {
  return row.collective == cell.cell.collective && row.bytes == cell.cell.bytes &&
         row.is_default == cell.cell.is_default() && (row.is_default || row.config == cell.config);
}

double CellSurrogate::NoiseOf(size_t repeats) {
  return kNoise * kNoise / static_cast<double>(std::max<size_t>(repeats, 1));
}

CellSurrogate::CellSurrogate(const std::vector<PricedCell>& cells,
                             const std::vector<std::vector<float>>& samples)
    : cells_(cells), mean_(cells.size()), explained_(cells.size()) {
  for (int c = 0; c < kTunableCollectives; ++c) {
    std::vector<size_t> members, measured;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (static_cast<int>(cells[i].cell.collective) != c) continue;
      members.push_back(i);
      if (!samples[i].empty()) measured.push_back(i);
    }
    Fit(measured, members, samples);
  }
}

// Fits the model of one collective. `members` are the indices of its cells, `measured` of those with samples.
void CellSurrogate::Fit(const std::vector<size_t>& measured, const std::vector<size_t>& members,
                        const std::vector<std::vector<float>>& samples) {
  const Rows lower = Cholesky(cells_, measured, samples);
  std::vector<double> residuals;
  for (const size_t i : measured)
    residuals.push_back(std::log2(Microseconds(samples[i])) - std::log2(cells_[i].prior_us));
  residuals = SolveLower(lower, std::move(residuals));
  for (const size_t member : members) {
    std::vector<double> covariances;
    for (const size_t i : measured) covariances.push_back(Kernel(cells_[member], cells_[i]));
    explained_[member] = SolveLower(lower, std::move(covariances));
    mean_[member] = std::log2(cells_[member].prior_us) + Dot(explained_[member], residuals, residuals.size());
  }
}

double CellSurrogate::Covariance(size_t a, size_t b) const {
  return Kernel(cells_[a], cells_[b]) - Dot(explained_[a], explained_[b], explained_[a].size());
}

}  // namespace dynamiccl
