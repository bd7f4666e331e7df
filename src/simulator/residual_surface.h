// SPDX-License-Identifier: Apache-2.0
// The residuals of one config at one shape of communicator, from those of the rank counts that were measured.
#pragma once

#include <map>
#include <vector>

#include "src/simulator/closed_form.h"
#include "src/simulator/system.h"

namespace dynamiccl {

class ResidualSurface {
 public:
  // Those residuals of `system` that are exactly of this config. The system must outlive this.
  ResidualSurface(const System& system, Collective collective, const CollectiveConfig& config);

  bool empty() const { return columns_.empty(); }
  // The logarithm of the factor; `here` are the formulas' times of the shape asked for.
  double At(const CollectiveTimes& here, int n_ranks, uint64_t bytes) const;

 private:
  struct Column {
    int n_ranks;
    CollectiveTimes formulas;
    std::vector<double> log2_bytes;  // ascending
    std::vector<double> values;
  };
  // A column's share of the answer: its residual, and the formulas' time there.
  struct Seen {
    double residual;
    double log_formula;
  };
  Seen See(const Column& column, int n_ranks, uint64_t bytes) const;
  // What a column's residual weighs `near` doublings away where another column lies `far` on the other side.
  double Weight(double near, double far) const;
  double LogFormula(const CollectiveTimes& formulas, double bytes) const;

  const System& system_;
  Collective collective_;
  CollectiveConfig config_;
  std::map<double, Column> columns_;  // by log2 of the ranks
};

}  // namespace dynamiccl
