// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/key_account.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

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
  if (ns >= 0) choice_.Take(ns);
  total_ns_ += ns >= 0 ? ns : choice_.mean();
  if (default_.count() == 0) return;
  const double upper = default_.Upper();
  if (ns >= 0) gross_ = ns > kGrossTimes * default_.mean() ? gross_ + 1 : 0;
  const double counted = ns >= 0 ? std::min(ns, kWinsoriseTimes * upper) : choice_.mean();
  excess_ns_ = std::max(0.0, excess_ns_ + counted - upper);
}

bool KeyAccount::Overspent() const {
  if (gross_ >= kGrossCalls) return true;
  const double allowed_calls = kFirstCreditCalls + kTimeBudget * static_cast<double>(calls_of_span_);
  return default_.count() > 0 && excess_ns_ > allowed_calls * default_.mean();
}

void KeyAccount::Restart() {
  default_ = choice_ = TimeLevel();
  calls_of_span_ = 0;
  excess_ns_ = 0;
  gross_ = 0;
}

}  // namespace dynamiccl
