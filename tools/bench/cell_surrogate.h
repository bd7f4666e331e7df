// SPDX-License-Identifier: Apache-2.0
// What a sweep expects of cells that it did not measure: a Gaussian process over the residual
// log2(time / cost model's estimate), one for each collective of one fabric. Neighbours in size, algorithm,
// protocol and channels err alike, by a kernel whose lengths and deviations are stated in the source.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/cost_model/cost_model.h"
#include "tools/bench/sweep_plan.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// A cell of a plan as the surrogate sees it. `config` is what is timed: for the default the library's own
// choice.
struct PricedCell {
  PlannedCell cell;
  CollectiveConfig config;
  double prior_us = 1;  // cost model's estimate, above 0
};

// Where the cost model cannot price the config, a price of a slow link stands in.
PricedCell PriceCell(const CostModelInput& model, const PlannedCell& cell, const CollectiveConfig& config);

// Between a cell and a row of a measurement file.
Measurement RowOf(const std::string& topology, const PricedCell& cell, std::vector<float> microseconds);
bool IsOf(const Measurement& row, const PricedCell& cell);

class CellSurrogate {
 public:
  // `samples[i]` are the times of cell i in microseconds, empty where it was not measured; the median counts.
  // Cubic in the number of measured cells of a collective.
  CellSurrogate(const std::vector<PricedCell>& cells, const std::vector<std::vector<float>>& samples);

  // log2 microseconds; of cells of one collective.
  double mean(size_t cell) const { return mean_[cell]; }
  double Covariance(size_t a, size_t b) const;
  double variance(size_t cell) const { return Covariance(cell, cell); }

  // Variance of the median of so many repeats, octaves squared.
  static double NoiseOf(size_t repeats);

 private:
  void Fit(const std::vector<size_t>& measured, const std::vector<size_t>& members,
           const std::vector<std::vector<float>>& samples);

  const std::vector<PricedCell>& cells_;
  std::vector<double> mean_;
  std::vector<std::vector<double>> explained_;  // of each cell: the part of its prior that was measured away
};

}  // namespace dynamiccl
