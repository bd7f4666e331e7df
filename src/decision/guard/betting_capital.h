// SPDX-License-Identifier: Apache-2.0
// A sequential test: does the mean of bounded values lie below a border? The caller may look at the result
// after every value, and the probability that the test is ever wrong is still at most delta.
//
// Method: a gambler bets against "the mean is at least the border". If that statement is true, the gambler's
// capital is a non-negative supermartingale that begins at 1, and by Ville's inequality it ever reaches
// 1/delta with probability at most delta. So a capital of 1/delta answers the question with yes. The test
// needs no distribution, only bounded values and a conditional mean that does not fall below the border.
//
// Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of
// the Royal Statistical Society B 86 (2024), 1-27: capital process, and bets by approximate GRAPA.
#pragma once

#include <cstdint>

namespace dynamiccl {

// One such test. A plain value of constant size; one thread. Example: BettingTest(-0.005, 0.2) over
// log(NCCL's time / the choice's) finds that NCCL's choice is at least 0.5 % faster. At 7 % noise it sees a
// gain of 10 % within 30 pairs in three of four jobs (guard_statistics_test.cc).
class BettingTest {
 public:
  // Values are limited to [-bound, bound], and -bound < border < bound. `guess` stands for the mean in the
  // first bet: a wrong guess costs a part of the capital but makes no error.
  BettingTest(double border, double bound, double guess = 0);

  // Adds a value, which must not be NaN.
  void Add(double value);
  // True if the mean is below the border. Over all looks together this is wrong with probability `delta` at
  // most. Once true for a delta, it stays true.
  bool Below(double delta) const;
  uint32_t count() const { return count_; }
  // Mean of the values, each limited to [-bound, bound]; 0 without any.
  double mean() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  // Share of the distance to the border that the gambler stakes on the next value, at least 0.
  double NextBet() const;

  double border_;
  double bound_;
  double guess_;
  uint32_t count_ = 0;
  double sum_ = 0;
  // Sum of the squares of the values, each limited to [-bound, bound].
  double squares_ = 0;
  // Log of the capital, and its highest value so far. The test is valid at any time, so the highest value
  // counts.
  double log_capital_ = 0;
  double most_log_capital_ = 0;
};

}  // namespace dynamiccl
