// SPDX-License-Identifier: Apache-2.0
// Estimates for how much of each key's transfer time the program waits, from the effect of trials and samples
// on the time of its training steps.
//
// If a call uses a slower config than its key's choice, the call takes longer by an excess time. The step
// takes longer by the part of the excess for which the program waits. A hash draws the calls that use another
// config (table_plan.h), so trials and samples are a random experiment, independent of everything else in the
// program. The model is linear,
//   time of a step - its usual time = sum over keys of share(key) x (excess(key) - its usual excess) + noise
// The shares are found by least squares with forgetting. Usual values are averages over the steps just
// before, so slow changes, or those of another table version, are not taken for effects of single calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "src/collective/role.h"

namespace dynamiccl {

// The share of one key's transfer time for which the program waits.
struct WaitedShare {
  double share = 0;  // 0: hidden behind computation, 1: the program waits for all of it
  double error = 0;  // standard error
};

// Returns the level of a share: hidden below a quarter, exposed above three quarters.
Criticality CriticalityOf(double share);

// The shares of one communicator's keys, owned by StepEffects on the leader's control thread. Memory is
// constant, and a step costs time in the square of the number of keys. Keys whose shares cannot be
// distinguished stay unknown.
class WaitedShares {
 public:
  // The most keys that are followed: the first ones that had any excess. Other keys stay unknown.
  static constexpr size_t kMaxKeys = 24;

  // Adds two consecutive steps. `excess_ns` has, for each key, the time by which calls of both steps took
  // longer than calls of the key's choice. `two_steps_ns` is the duration of both steps together. The program
  // may wait for a call at the end of one step only in the next step, so steps are added in overlapping pairs
  // and each one is counted twice.
  void TakeSteps(const std::map<uint32_t, double>& excess_ns, double two_steps_ns);
  // Begins new usual values, because the coming steps differ from the ones before: they use another table
  // version, or the program did other work in between.
  void ForgetLevel() { since_ = 0; }
  // Returns the share of a key (by KeyCode); nothing before it was estimated.
  std::optional<WaitedShare> Of(uint32_t key) const;
  // Returns the level of a key; kUnknown until the standard error of its share is small enough. After that a
  // level changes only when the share is clearly beyond a border.
  Criticality LevelOf(uint32_t key) const;

 private:
  using Row = std::array<double, kMaxKeys>;

  // Returns the excess times by column of the equations; gives a new key the next free column.
  Row RowOf(const std::map<uint32_t, double>& excess_ns);
  // Subtracts the usual values from `x` and `time`.
  void TakeLevelAway(Row& x, double& time);
  // Estimates all shares, and turns them into levels.
  void Solve();
  void Rate();

  std::map<uint32_t, size_t> columns_;  // KeyCode to its place in the rows
  int since_ = 0;                       // steps since ForgetLevel
  // Usual excess of each key and usual time.
  Row usual_{};
  double usual_ns_ = 0;
  // Sums with forgetting: products of excesses, of excesses with the time, and squares of the time.
  std::array<Row, kMaxKeys> products_{};
  Row with_time_{};
  double squares_ = 0;
  // Number of steps, with the same forgetting as the sums.
  double steps_ = 0;
  // Number of all steps.
  uint64_t taken_ = 0;
  // Shares and their standard errors.
  Row slopes_{};
  Row errors_{};
  // Standard deviation of step times from the model, in nanoseconds; 0: not known.
  double deviation_ = 0;
  std::array<Criticality, kMaxKeys> levels_{};
};

}  // namespace dynamiccl
