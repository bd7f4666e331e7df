// SPDX-License-Identifier: Apache-2.0
// Levenberg-Marquardt with iteratively reweighted residuals: each iteration solves (J'WJ + damping * diag)
// step = -J'Wr, where W gives residuals beyond the width less weight. A step that does not lower the loss is
// tried again with four times the damping.
#include "src/simulator/huber_fit.h"

#include <cmath>

namespace dynamiccl {
namespace {

// Step by which a parameter is changed to compute the Jacobian numerically.
constexpr double kDifference = 1e-6;
// The search ends when a step lowers the loss by less than this share.
constexpr double kLeastGain = 1e-6;
// Damping at the start, and the damping at which the search gives up.
constexpr double kFirstDamping = 1e-2;
constexpr double kMaxDamping = 1e8;
// A step that would change a parameter by more than this is damped further, so that logarithms stay finite.
constexpr double kLongestStep = 3;

using Matrix = std::vector<std::vector<double>>;

// Returns the sum of Huber's losses of all residuals.
double Loss(const std::vector<double>& residuals, double width) {
  double sum = 0;
  for (const double residual : residuals) sum += HuberLoss(residual, width);
  return sum;
}

// Solves the system by Cholesky's method, with the result in `right`; false where the matrix is not positive
// definite.
bool Solve(Matrix matrix, std::vector<double>& right) {
  const size_t n = right.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      if (i == j && !(sum > 0)) return false;
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return true;
}

// The weighted normal equations at one point: J'WJ (lower half) and -J'Wr.
struct Equations {
  Matrix matrix;
  std::vector<double> right;
};

// Evaluates the function once for each parameter.
Equations EquationsAt(const ResidualFunction& function, std::vector<double> x,
                      const std::vector<double>& residuals, double width) {
  const size_t n = x.size();
  Matrix columns(n);
  for (size_t i = 0; i < n; ++i) {
    const double kept = x[i];
    x[i] = kept + kDifference;
    function(x, columns[i]);
    x[i] = kept;
    for (size_t r = 0; r < residuals.size(); ++r)
      columns[i][r] = (columns[i][r] - residuals[r]) / kDifference;
  }
  Equations equations{Matrix(n, std::vector<double>(n, 0)), std::vector<double>(n, 0)};
  for (size_t r = 0; r < residuals.size(); ++r) {
    const double weight = std::fabs(residuals[r]) > width ? width / std::fabs(residuals[r]) : 1;
    for (size_t i = 0; i < n; ++i) {
      const double weighted = weight * columns[i][r];
      if (weighted == 0) continue;
      equations.right[i] -= weighted * residuals[r];
      for (size_t j = 0; j <= i; ++j) equations.matrix[i][j] += weighted * columns[j][r];
    }
  }
  return equations;
}

// Returns the damped step; empty if it cannot be computed or is too long.
std::vector<double> Step(const Equations& equations, double damping) {
  Matrix matrix = equations.matrix;
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i][i] += damping * (matrix[i][i] + 1e-9);
  std::vector<double> step = equations.right;
  if (!Solve(std::move(matrix), step)) return {};
  for (const double change : step) {
    if (!(std::fabs(change) <= kLongestStep)) return {};
  }
  return step;
}

}  // namespace

double HuberLoss(double residual, double width) {
  const double size = std::fabs(residual);
  return size <= width ? size * size / 2 : width * (size - width / 2);
}

// The damping falls after a step that helped and rises while steps do not.
HuberFit MinimizeHuber(const ResidualFunction& function, std::vector<double> start, double width, int most) {
  HuberFit fit{.x = std::move(start)};
  std::vector<double> residuals;
  std::vector<double> tried_residuals;
  function(fit.x, residuals);
  fit.loss = Loss(residuals, width);
  double damping = kFirstDamping;
  for (; fit.iterations < most && damping <= kMaxDamping; ++fit.iterations) {
    const Equations equations = EquationsAt(function, fit.x, residuals, width);
    double gain = 0;
    for (; damping <= kMaxDamping && gain <= 0; damping *= 4) {
      const std::vector<double> step = Step(equations, damping);
      if (step.empty()) continue;
      std::vector<double> tried = fit.x;
      for (size_t i = 0; i < tried.size(); ++i) tried[i] += step[i];
      function(tried, tried_residuals);
      const double loss = Loss(tried_residuals, width);
      if (!(loss < fit.loss)) continue;
      gain = fit.loss - loss;
      fit.x = std::move(tried);
      fit.loss = loss;
      std::swap(residuals, tried_residuals);
      damping /= 40;  // together with the loop's factor of 4: a tenth of the damping that worked
    }
    if (gain <= kLeastGain * fit.loss) break;
  }
  return fit;
}

}  // namespace dynamiccl
