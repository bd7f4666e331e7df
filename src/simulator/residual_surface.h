// SPDX-License-Identifier: Apache-2.0
// The residuals of one config at one rank count, from those of the rank counts that were measured.
#pragma once

#include <map>
#include <vector>

#include "src/simulator/system.h"

namespace dynamiccl {

// Logarithms over (ranks, bytes) with linear interpolation in log2 of both; outside, the nearest value.
class ResidualSurface {
 public:
  // Those residuals of `system` that are exactly of this key.
  ResidualSurface(const System& system, Collective collective, Algorithm algorithm, Protocol protocol);

  bool empty() const { return columns_.empty(); }
  double At(int n_ranks, double log2_bytes) const;

 private:
  struct Column {
    std::vector<double> log2_bytes;  // ascending
    std::vector<double> values;
  };
  static double AtSize(const Column& column, double log2_bytes);

  double drift_;
  std::map<double, Column> columns_;  // by log2 of the ranks
};

}  // namespace dynamiccl
