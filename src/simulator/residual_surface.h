// SPDX-License-Identifier: Apache-2.0
// The residuals of one configuration at one shape of communicator, computed from those of the rank counts
// that were measured.
#pragma once

#include <map>
#include <vector>

#include "src/simulator/closed_form.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// Interpolates between measured points: over sizes linearly in log(bytes), over rank counts by the rules of
// system.h (formula_share, residual_reach, drift_bytes_per_rank). Immutable. The system must outlive it.
class ResidualSurface {
 public:
  // Takes the residuals of `system` that are exactly of this configuration.
  ResidualSurface(const System& system, Collective collective, const CollectiveConfig& config);

  bool empty() const { return columns_.empty(); }
  // Returns the natural logarithm of (time / formula) for `n_ranks` ranks and `bytes`. `here` holds the
  // formulas' times for a communicator of that shape.
  double At(const CollectiveTimes& here, int n_ranks, uint64_t bytes) const;

 private:
  // The residuals of one measured rank count.
  struct Column {
    int n_ranks;
    CollectiveTimes formulas;
    std::vector<double> log2_bytes;  // ascending
    std::vector<double> values;
  };
  // Holds what one column contributes: its residual, and the log of the formulas' time at its rank count.
  struct Seen {
    double residual;
    double log_formula;
    double LogTime() const { return log_formula + residual; }
  };
  using Columns = std::map<double, Column>;  // columns by log2 of the number of ranks
  Seen See(const Column& column, int n_ranks, uint64_t bytes) const;
  // Returns what At returns below the least column or above the largest one. `nearest` is the nearer of these
  // two.
  double Beyond(Columns::const_iterator nearest, const CollectiveTimes& here, int n_ranks,
                uint64_t bytes) const;
  // Weight of a column's residual `near` doublings away, when another column lies `far` doublings away on the
  // other side.
  double Weight(double near, double far) const;
  double LogFormula(const CollectiveTimes& formulas, double bytes) const;

  const System& system_;
  Collective collective_;
  CollectiveConfig config_;
  Columns columns_;
};

}  // namespace dynamiccl
