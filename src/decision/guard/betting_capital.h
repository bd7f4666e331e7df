// SPDX-License-Identifier: Apache-2.0
// Whether the mean of bounded values lies below a border, looked at after every value: the probability that
// it is ever said wrongly is at most delta, however long one looks (the capital of a gambler who bets against
// "the mean is at least the border" is a non-negative supermartingale, and Ville's inequality bounds its
// maximum). Needs no distribution, only that the conditional mean does not fall below the border.
// Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of
// the Royal Statistical Society B 86 (2024), 1-27: capital process, and bets by approximate GRAPA.
#pragma once

#include <cstdint>

namespace dynamiccl {

class BettingTest {
 public:
  // Values are winsorised to [-bound, bound]; -bound < border < bound. The first bet is made on `guess`, of
  // the mean: a wrong one costs a part of the capital, no error.
  BettingTest(double border, double bound, double guess = 0);

  void Add(double value);
  // The mean is below the border, wrong with at most this probability over all looks.
  bool Below(double delta) const;
  uint32_t count() const { return count_; }
  // Of the winsorised values; 0 without any.
  double mean() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  double NextBet() const;

  double border_;
  double bound_;
  double guess_;
  uint32_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double log_capital_ = 0;
  double most_log_capital_ = 0;
};

}  // namespace dynamiccl
