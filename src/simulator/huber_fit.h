// SPDX-License-Identifier: Apache-2.0
// Robust least squares by Levenberg and Marquardt's method: small dense problems, deterministic.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace dynamiccl {

// Writes the residuals at `x`; the same number of them for every x.
using ResidualFunction = std::function<void(std::span<const double> x, std::vector<double>& residuals)>;

struct HuberFit {
  std::vector<double> x;
  double loss = 0;
  int iterations = 0;
};

// Huber's loss of one residual: r^2 / 2 up to `width`, from there on a straight line.
double HuberLoss(double residual, double width);

// Minimizes the sum of Huber losses from `start`, by weighted steps with a numerical Jacobian: parameters
// should be of order 1 (logarithms). Ends where a step gains less than a millionth, or after `most`
// iterations. Never worse than the start.
HuberFit MinimizeHuber(const ResidualFunction& function, std::vector<double> start, double width, int most);

}  // namespace dynamiccl
