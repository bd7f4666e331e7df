// SPDX-License-Identifier: Apache-2.0
// The account of one key: what its choice has cost so far, compared with what NCCL's own choice would have
// cost by estimate. All times are in nanoseconds.
//
// The promise is cumulative: the choice's calls take at most (1 + kTimeBudget) x NCCL's time, plus a credit
// of kFirstCreditCalls calls for the time until the first samples are taken. NCCL's time is not observed for
// a call that used the choice, so each call is compared with the upper end of the times of NCCL's calls.
// Losses add up; a gain reduces earlier losses but is not saved up for later ones.
#pragma once

#include <array>
#include <cstdint>

namespace dynamiccl {

// Share of NCCL's time that a choice may lose in the long run: the 1 % of docs/guard.md.
inline constexpr double kTimeBudget = 0.01;
// A choice may at first lose as much time as this many calls of NCCL's choice take (docs/guard.md).
// Independent of that, four calls in a row at more than 3x NCCL's time revoke it (IsGross).
inline constexpr double kFirstCreditCalls = 8;
// A call's time is limited to this multiple of the expected time, because a stall of the machine is not
// caused by a choice. Three calls at 10x count as 12 calls and use up the credit (guard_statistics_test.cc).
inline constexpr double kWinsoriseTimes = 4;

// The mean time of one kind of call, with its uncertainty. It follows slow drift over some hundred calls. A
// plain value for one thread.
class TimeLevel {
 public:
  // Adds a call's time, which must be above 0. It is limited to kWinsoriseTimes the mean.
  void Take(double ns);
  // Number of call times added so far, but at most 512, which is how many the mean remembers.
  uint32_t count() const { return count_; }
  double mean() const { return mean_; }
  // The mean plus three standard errors; twice the mean until two call times were added.
  double Upper() const;

 private:
  uint32_t count_ = 0;  // at most kMemory
  double mean_ = 0;
  double variance_ = 0;
};

// The account of one key, owned by its GuardedKey on the leader's control thread. Each call of the key is
// passed to it exactly once. It answers whether the choice may stay; it changes nothing by itself.
class KeyAccount {
 public:
  // Adds a call that used NCCL's choice. `ns` below 0: the call was not timed, so the mean is used for it.
  void TakeDefault(double ns);
  // Adds a call that used a choice other than NCCL's. `ns` has the same meaning as in TakeDefault.
  void TakeChoice(double ns);
  // Adds a call of the choice that was timed because calls looked slow. The time counts towards IsGross but
  // not in the mean, which it would bias.
  void TakeChoiceOnSuspicion(double ns);

  // Estimated loss of the choice's calls since Restart, at least 0.
  double excess_ns() const { return excess_ns_; }
  // True if the loss is above the credit and kTimeBudget of the calls since Restart, or if IsGross.
  bool Overspent() const;
  // True if the last kGrossCalls timed calls of the choice each took more than kGrossTimes times as long as
  // NCCL's calls.
  bool IsGross() const { return gross_ >= kGrossCalls; }
  const TimeLevel& default_level() const { return default_; }
  const TimeLevel& choice_level() const { return choice_; }
  // Estimated time of all calls so far.
  double total_ns() const { return total_ns_; }
  // Mean time of NCCL's choice. After Restart it is the mean before Restart until there is a new sample; 0 if
  // there never was a sample.
  double default_ns() const { return default_.count() > 0 ? default_.mean() : default_before_ns_; }
  // Forgets mean times and losses, because the fabric or the choice changed. The total time stays.
  void Restart();

 private:
  // Four calls in a row that each take over three times as long as NCCL's revoke a choice at once
  // (docs/guard.md). A single one may be a stall of the machine.
  static constexpr int kGrossCalls = 4;
  static constexpr double kGrossTimes = 3;

  void CountGross(double ns);
  // Returns a time for the call in which a single slow call is replaced by its neighbours. NCCL's few samples
  // may have met no stall, so a stall of the choice would be an unfair comparison.
  double Lasting(double ns);

  TimeLevel default_;
  TimeLevel choice_;
  uint64_t calls_ = 0;          // number of all calls
  uint64_t calls_of_span_ = 0;  // number of calls since Restart
  double total_ns_ = 0;
  // Mean time of NCCL's choice before the last Restart, in nanoseconds.
  double default_before_ns_ = 0;
  double excess_ns_ = 0;
  int gross_ = 0;                         // gross calls in a row
  std::array<double, 2> before_{-1, -1};  // the last two call times of the choice; below 0: none
};

}  // namespace dynamiccl
