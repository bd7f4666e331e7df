// SPDX-License-Identifier: Apache-2.0
// Predicts the time of cells (a config for one collective and size) that a sweep has not measured. The
// predictor, called surrogate, is a Gaussian process over the residual log2(time / cost model's estimate).
// Each collective has one. Cells with similar size, algorithm, protocol and channels have similar residuals.
// cell_surrogate.cc has the constants that say how similar.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/cost_model/cost_model.h"
#include "tools/bench/sweep_plan.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// One cell of a sweep (a collective and size with a config or the library's default), with the time that the
// cost model expects. `config` is the cell's own config; for the default it is the config that the library
// chooses.
struct PricedCell {
  PlannedCell cell;
  CollectiveConfig config;
  // The time that the cost model expects for one call, in microseconds; above 0.
  double prior_us = 1;
};

// Adds the cost model's expected time to a cell. If the cost model does not know the config, the time is that
// of a slow link with 10 us latency and 1 GB/s.
PricedCell PriceCell(const CostModelInput& model, const PlannedCell& cell, const CollectiveConfig& config);

// Returns a row of a measurement file with the cell's times.
Measurement RowOf(const std::string& topology, const PricedCell& cell, std::vector<float> microseconds);
// True if this row of a measurement file holds times of this cell.
bool IsOf(const Measurement& row, const PricedCell& cell);

// Predicts the times of all cells from those of the measured ones. The object does not change after its
// construction. `cells` must outlive it.
class CellSurrogate {
 public:
  // Fits the predictor. `samples[i]` are the times of cell i in microseconds, of which the median counts;
  // empty: the cell was not measured. The work grows with the cube of the number of measured cells of a
  // collective.
  CellSurrogate(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples);

  // Expected time of the cell, as log2 of microseconds.
  double mean(size_t cell) const { return mean_[cell]; }
  // Covariance of the predicted times of two cells of one collective, in octaves squared.
  double Covariance(size_t a, size_t b) const;
  double variance(size_t cell) const { return Covariance(cell, cell); }

  // Variance of the median of `repeats` timed repeats, in octaves squared. It is approximated by the variance
  // of their mean.
  static double NoiseOf(size_t repeats);

 private:
  void Fit(const std::vector<size_t>& measured, const std::vector<size_t>& members,
           const std::vector<std::vector<float>>& samples);

  const std::vector<PricedCell>& cells_;
  std::vector<double> mean_;
  // For each cell the vector L^-1 k (cell_surrogate.cc). Its squared length is the part of the cell's
  // variance that the measurements removed.
  std::vector<std::vector<double>> explained_;
};

}  // namespace dynamiccl
