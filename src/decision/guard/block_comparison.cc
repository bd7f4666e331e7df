// SPDX-License-Identifier: Apache-2.0
// A two-sample test on the logs of block means. It is looked at after every block, but answers only when the
// needed number of blocks is there, or when the table is slower beyond any doubt. The noise of a block is the
// pooled standard deviation of both arms.
#include "src/decision/guard/block_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Blocks an arm before the noise is looked at: with fewer it is hardly known.
constexpr size_t kFirstLook = 4;
// Blocks an arm at most. Programs so noisy that they need more cannot be told apart in a day.
constexpr int kMaxBlocks = 1000;
// Standard errors at which a loss ends the comparison early: far beyond what looking after every block makes
// likely by chance.
constexpr double kGrossErrors = 6;
// Quantile of the normal distribution for 5 % error, two-sided.
constexpr double kTwoSided = 1.96;

double SquaresAround(const std::vector<double>& values, double mean) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [=](double sum, double x) { return sum + (x - mean) * (x - mean); });
}

// Pooled standard deviation of one block, from both arms.
double Noise(const std::vector<double>& a, const std::vector<double>& b) {
  const double squares = SquaresAround(a, Mean(a)) + SquaresAround(b, Mean(b));
  return std::sqrt(squares / static_cast<double>(a.size() + b.size() - 2));
}

}  // namespace

int BlocksPerArm(double noise, double effect) {
  // Quantile of the normal distribution for 80 % power.
  constexpr double kPower = 0.84;
  const double ratio = (kTwoSided + kPower) * noise / effect;
  return static_cast<int>(std::ceil(std::min<double>(kMaxBlocks, 2 * ratio * ratio)));
}

void BlockComparison::TakeBlock(bool with_table, double mean_step_ns) {
  if (verdict_ != Verdict::kOpen || mean_step_ns <= 0) return;
  (with_table ? table_ : nccl_).push_back(std::log(mean_step_ns));
  if (std::min(table_.size(), nccl_.size()) >= kFirstLook) Judge();
}

double BlockComparison::difference() const {
  return table_.empty() || nccl_.empty() ? 0 : std::expm1(Mean(table_) - Mean(nccl_));
}

double BlockComparison::standard_error() const {
  if (table_.size() + nccl_.size() < 3 || table_.empty() || nccl_.empty()) return 0;
  const double per_block = 1.0 / static_cast<double>(table_.size()) + 1.0 / static_cast<double>(nccl_.size());
  return Noise(table_, nccl_) * std::sqrt(per_block);
}

void BlockComparison::Judge() {
  needed_ = std::max(static_cast<int>(kFirstLook), BlocksPerArm(Noise(table_, nccl_), kEffect));
  const double error = std::max(standard_error(), 1e-9);
  const double off = difference() / error;
  const bool gross = difference() > kEffect && off > kGrossErrors;
  if (gross) {
    verdict_ = Verdict::kTableIsSlower;
  } else if (static_cast<int>(std::min(table_.size(), nccl_.size())) >= needed_) {
    verdict_ = off > kTwoSided    ? Verdict::kTableIsSlower
               : off < -kTwoSided ? Verdict::kTableIsFaster
                                  : Verdict::kNoDifference;
  }
}

}  // namespace dynamiccl
