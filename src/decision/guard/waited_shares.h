// SPDX-License-Identifier: Apache-2.0
// How much of each key's transfers the program waits for, from what trials and samples do to the time of its
// training steps.
//
// A config that takes longer than the key's choice makes a step longer by that part of the excess that the
// program waits for. A hash draws which calls use another config (table_plan.h), so nothing else goes along
// with it: trials and samples are a random experiment. The model is linear,
//     time of a step - its usual time = sum over keys of share(key) x (excess(key) - its usual excess) +
//     noise
// and the shares are found by least squares with forgetting. Usual values are averages of the steps just
// before: what changes slowly, or with another version of the table, is no effect of single calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "src/collective/role.h"

namespace dynamiccl {

// The share of one key.
struct WaitedShare {
  double share = 0;  // 0: hidden behind computation, 1: the program waits for all of it
  double error = 0;  // standard error
};

// The shares of one communicator's keys, owned by StepEffects on the leader's control thread. Constant size;
// a step costs work in the square of the number of keys. Keys whose shares cannot be told apart stay unknown.
class WaitedShares {
 public:
  // Keys that are followed at most, the first ones that had any excess. Others stay unknown.
  static constexpr size_t kMaxKeys = 24;

  // Adds two consecutive steps: `excess_ns` by key is what their calls took more than at their keys' choices,
  // `two_steps_ns` how long both took. A call at the end of one step may be waited for in the next, so steps
  // are added in overlapping pairs and each comes twice.
  void TakeSteps(const std::map<uint32_t, double>& excess_ns, double two_steps_ns);
  // Begins new usual values, because steps from now on are others: another version of the table, or other
  // work in between.
  void ForgetLevel() { since_ = 0; }
  // The share of a key (by KeyCode); nothing before it was estimated.
  std::optional<WaitedShare> Of(uint32_t key) const;
  // The level of a key; kUnknown until its standard error is small enough. After that a level changes only
  // when the share is clearly beyond a border.
  Criticality LevelOf(uint32_t key) const;

 private:
  using Row = std::array<double, kMaxKeys>;

  // The excess of each column; gives a new key the next free column.
  Row RowOf(const std::map<uint32_t, double>& excess_ns);
  // Replaces the values by their differences from the usual ones.
  void TakeLevelAway(Row& x, double& time);
  // Estimates all shares, and rates them as levels.
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
  // Number of steps, forgetting as the sums do.
  double steps_ = 0;
  // Number of steps in all.
  uint64_t taken_ = 0;
  // Shares and their standard errors.
  Row slopes_{};
  Row errors_{};
  // Standard deviation of a step's time from the model, in nanoseconds; 0: not known.
  double deviation_ = 0;
  std::array<Criticality, kMaxKeys> levels_{};
};

}  // namespace dynamiccl
