// SPDX-License-Identifier: Apache-2.0
// What a choice has cost one key so far, compared with what NCCL's own choice is estimated to have cost: the
// promise is cumulative time <= (1 + kTimeBudget) x estimated default, beyond a first credit that lets the
// first samples be taken. Gains are not saved up for later losses. Times in nanoseconds.
#pragma once

#include <array>
#include <cstdint>

namespace dynamiccl {

inline constexpr double kTimeBudget = 0.01;
// Calls at NCCL's time that a choice may lose at first. Four calls of 10x revoke it whatever they lost.
inline constexpr double kFirstCreditCalls = 8;
// Times of a call count as at most so many times what is expected of it: one stall of the machine is no cost
// of a choice.
inline constexpr double kWinsoriseTimes = 4;

// Mean of a kind of call with its uncertainty; follows slow drift over some hundred calls.
class TimeLevel {
 public:
  void Take(double ns);
  uint32_t count() const { return count_; }
  double mean() const { return mean_; }
  // Three standard errors above; twice the mean as long as one sample is all.
  double Upper() const;

 private:
  uint32_t count_ = 0;  // at most kMemory
  double mean_ = 0;
  double variance_ = 0;
};

class KeyAccount {
 public:
  // One call of the key at NCCL's choice; `ns` below 0: not timed.
  void TakeDefault(double ns);
  // One call at the choice that is not NCCL's.
  void TakeChoice(double ns);
  // The same, of a call whose time counts for nothing but how far it is off.
  void TakeChoiceOnSuspicion(double ns);

  // Estimated loss of the choice's calls, at least 0.
  double excess_ns() const { return excess_ns_; }
  // The loss is above what is allowed, or the last kGrossCalls timed calls were all above kGrossTimes NCCL's
  // time.
  bool Overspent() const;
  // The latter alone.
  bool IsGross() const { return gross_ >= kGrossCalls; }
  const TimeLevel& default_level() const { return default_; }
  const TimeLevel& choice_level() const { return choice_; }
  // Estimated time of all calls so far, and what they would have taken at NCCL's choice.
  double total_ns() const { return total_ns_; }
  double default_total_ns() const { return default_.mean() * static_cast<double>(calls_); }
  // What NCCL's choice takes, as far as it is known: after Restart that of before, until there is a sample.
  double default_ns() const { return default_.count() > 0 ? default_.mean() : default_before_ns_; }
  // The fabric changed, or the choice did: samples of before say nothing. Totals stay.
  void Restart();

 private:
  static constexpr int kGrossCalls = 4;
  static constexpr double kGrossTimes = 3;

  void CountGross(double ns);
  // A single slow call is the machine's: NCCL's few samples may have met none.
  double Lasting(double ns);

  TimeLevel default_;
  TimeLevel choice_;
  uint64_t calls_ = 0;          // in all
  uint64_t calls_of_span_ = 0;  // since Restart
  double total_ns_ = 0;
  double default_before_ns_ = 0;
  double excess_ns_ = 0;
  int gross_ = 0;                         // timed calls in a row
  std::array<double, 2> before_{-1, -1};  // the last two times of the choice
};

}  // namespace dynamiccl
