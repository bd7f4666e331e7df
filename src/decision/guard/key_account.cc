// SPDX-License-Identifier: Apache-2.0
// The account of one key. The mean and the variance of a kind of call are moving averages: the n-th call's
// time enters with weight 1/n, and from the 512th on with weight 1/512. The excess is the time that calls
// took above NCCL's, as a sum that never falls below 0, as in CUSUM:
//   excess = max(0, excess + time of the call - Upper() of NCCL's times).
// Upper() is the upper limit of the interval in which the mean is.
#include "src/decision/guard/key_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dynamiccl {
namespace {

// A mean time follows about this many calls. At 5 % noise three standard errors of 512 calls are 0.7 % of the
// mean, so Upper() stays within the 1 % that the promise allows.
constexpr uint32_t kMemory = 512;

}  // namespace

void TimeLevel::Take(double ns) {
  const double x = count_ == 0 ? ns : std::min(ns, kWinsoriseTimes * mean_);
  count_ = std::min(count_ + 1, kMemory);
  const double off = x - mean_;
  mean_ += off / count_;
  variance_ += (off * (x - mean_) - variance_) / count_;
}

double TimeLevel::Upper() const {
  if (count_ < 2) return 2 * mean_;
  return mean_ + 3 * std::sqrt(variance_ / (count_ - 1));
}

void KeyAccount::TakeDefault(double ns) {
  ++calls_;
  ++calls_of_span_;
  if (ns >= 0) default_.Take(ns);
  total_ns_ += ns >= 0 ? ns : default_.mean();
}

void KeyAccount::TakeChoice(double ns) {
  ++calls_;
  ++calls_of_span_;
  const double lasting = ns >= 0 ? Lasting(ns) : -1;
  if (ns >= 0) choice_.Take(lasting);
  total_ns_ += ns >= 0 ? ns : choice_.mean();
  if (default_.count() == 0) return;
  const double upper = default_.Upper();
  CountGross(ns);
  const double counted = ns >= 0 ? std::min(lasting, kWinsoriseTimes * upper) : choice_.mean();
  excess_ns_ = std::max(0.0, excess_ns_ + counted - upper);
}

// Returns the median of the last three call times of the choice, of which `ns` is the newest. Returns the
// only one if there is one so far, and the smaller one if there are two.
double KeyAccount::Lasting(double ns) {
  const double older = std::exchange(before_[0], before_[1]);
  const double newer = std::exchange(before_[1], ns);
  if (newer < 0) return ns;
  if (older < 0) return std::min(newer, ns);
  return std::max(std::min(older, newer), std::min(std::max(older, newer), ns));
}

void KeyAccount::TakeChoiceOnSuspicion(double ns) {
  TakeChoice(-1);
  CountGross(ns);
}

void KeyAccount::CountGross(double ns) {
  if (ns >= 0 && default_.count() > 0) gross_ = ns > kGrossTimes * default_.mean() ? gross_ + 1 : 0;
}

bool KeyAccount::Overspent() const {
  if (IsGross()) return true;
  const double allowed_calls = kFirstCreditCalls + kTimeBudget * static_cast<double>(calls_of_span_);
  return default_.count() > 0 && excess_ns_ > allowed_calls * default_.mean();
}

void KeyAccount::Restart() {
  default_before_ns_ = default_ns();
  default_ = choice_ = TimeLevel();
  calls_of_span_ = 0;
  excess_ns_ = 0;
  gross_ = 0;
  before_ = {-1, -1};
}

}  // namespace dynamiccl
