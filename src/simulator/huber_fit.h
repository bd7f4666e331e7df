// SPDX-License-Identifier: Apache-2.0
// Robust least squares by the method of Levenberg and Marquardt, for small dense problems. Deterministic:
// equal inputs give equal results.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace dynamiccl {

// Writes the residuals at `x`; their number must be the same for every x.
using ResidualFunction = std::function<void(std::span<const double> x, std::vector<double>& residuals)>;

// The point at which the search ended.
struct HuberFit {
  // The best point, its loss, and the number of iterations used.
  std::vector<double> x;
  double loss = 0;
  int iterations = 0;
};

// Returns Huber's loss of one residual: r^2 / 2 up to `width`, and a straight line from there on.
double HuberLoss(double residual, double width);

// Minimises the sum of Huber losses from `start`, by weighted steps with a numerical Jacobian. Parameters
// should be of order 1 (logarithms). The search ends when a step lowers the loss by less than a millionth, or
// after `most` iterations. The result is never worse than the start.
HuberFit MinimizeHuber(const ResidualFunction& function, std::vector<double> start, double width, int most);

}  // namespace dynamiccl
