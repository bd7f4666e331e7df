// SPDX-License-Identifier: Apache-2.0
// A gambler bets that the mean of the values lies below a border. Each value x multiplies the gambler's
// capital by 1 + bet (border - x). The bet is lead / (variance + lead^2), where lead = border - mean of the
// earlier values. This is approximate GRAPA, which maximises the expected log of the capital.
#include "src/decision/guard/betting_capital.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// A single value can cost the gambler at most this share of the capital. With a share of 1, one value at the
// bound would leave a capital of 0, and no later value could raise it again.
constexpr double kMaxStake = 0.9;

}  // namespace

BettingTest::BettingTest(double border, double bound, double guess)
    : border_(border), bound_(bound), guess_(std::clamp(guess, -bound, bound)) {}

// Returns the bet on the next value. It depends on earlier values only; otherwise the capital would not be a
// supermartingale. The mean and the variance include one imagined value, `guess_` with a deviation of bound /
// 2, so that they exist before the first real value.
double BettingTest::NextBet() const {
  const double n = count_ + 1.0;
  const double mean = (sum_ + guess_) / n;
  const double variance =
      (bound_ * bound_ / 4 + std::max(0.0, squares_ + guess_ * guess_ - n * mean * mean)) / n;
  const double lead = border_ - mean;
  return std::clamp(lead / (variance + lead * lead), 0.0, kMaxStake / (bound_ - border_));
}

void BettingTest::Add(double value) {
  const double x = std::clamp(value, -bound_, bound_);
  log_capital_ += std::log1p(NextBet() * (border_ - x));
  most_log_capital_ = std::max(most_log_capital_, log_capital_);
  sum_ += x;
  squares_ += x * x;
  ++count_;
}

bool BettingTest::Below(double delta) const {
  return most_log_capital_ >= -std::log(delta);
}

}  // namespace dynamiccl
