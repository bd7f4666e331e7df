// SPDX-License-Identifier: Apache-2.0
// Predicts the time of cells that a sweep has not measured. The model is a Gaussian process over the residual
// log2(time / cost model's estimate), one for each collective of one fabric. Neighbours in size, algorithm,
// protocol and channels have similar residuals; the kernel's lengths and deviations are constants of
// cell_surrogate.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/cost_model/cost_model.h"
#include "tools/bench/sweep_plan.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// A cell of a plan as the surrogate sees it. `config` is what is timed; for the default it is the library's
// own choice.
struct PricedCell {
  PlannedCell cell;
  CollectiveConfig config;
  // The cost model's estimate in microseconds, above 0.
  double prior_us = 1;
};

// Prices a cell. Where the cost model cannot price the config, the price is that of a slow link: 10 us and 1
// GB/s.
PricedCell PriceCell(const CostModelInput& model, const PlannedCell& cell, const CollectiveConfig& config);

// The row of a measurement file that holds the cell's times.
Measurement RowOf(const std::string& topology, const PricedCell& cell, std::vector<float> microseconds);
// Whether a row of a measurement file is of this cell.
bool IsOf(const Measurement& row, const PricedCell& cell);

// The fitted model; immutable. `cells` must outlive it.
class CellSurrogate {
 public:
  // Fits the model. `samples[i]` are the times of cell i in microseconds, of which the median counts; empty:
  // the cell was not measured. The cost is cubic in the number of measured cells of a collective.
  CellSurrogate(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples);

  // Expected time as log2 of microseconds.
  double mean(size_t cell) const { return mean_[cell]; }
  // Covariance of two cells of one collective, octaves squared.
  double Covariance(size_t a, size_t b) const;
  double variance(size_t cell) const { return Covariance(cell, cell); }

  // Variance of the median of `repeats` repeats, in squared octaves. The variance of their mean is used
  // instead.
  static double NoiseOf(size_t repeats);

 private:
  void Fit(const std::vector<size_t>& measured, const std::vector<size_t>& members,
           const std::vector<std::vector<float>>& samples);

  const std::vector<PricedCell>& cells_;
  std::vector<double> mean_;
  // For each cell the vector L^-1 k (cell_surrogate.cc), whose square is the variance that measurements
  // removed.
  std::vector<std::vector<double>> explained_;
};

}  // namespace dynamiccl
