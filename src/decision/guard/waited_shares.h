// SPDX-License-Identifier: Apache-2.0
// How much of each key's transfers the program waits for: what trials and samples do to its steps. A config
// that takes longer than the key's choice makes a step longer by that part of it that is waited for. Which
// calls use another config is drawn by a hash (table_plan.h), so nothing else goes along with it. How far
// steps are off those just before them is explained by how far all keys' excess is, by least squares: what
// changes slowly, or with another version of the table, is no effect of single calls.
// Leader only, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "src/collective/role.h"

namespace dynamiccl {

struct WaitedShare {
  double share = 0;  // 0: hidden behind computation, 1: the program waits for all of it
  double error = 0;  // standard error
};

class WaitedShares {
 public:
  // Keys beyond so many are not known.
  static constexpr size_t kMaxKeys = 24;

  // What the calls of two steps on end took more than at their keys' choices, in nanoseconds by key, and how
  // long the two took: what is waited for at the end of one shows in the next. Each step comes twice.
  void TakeSteps(const std::map<uint32_t, double>& excess_ns, double two_steps_ns);
  // Steps from now on are others: with another version of the table, or after something else came between.
  void ForgetLevel() { since_ = 0; }
  std::optional<WaitedShare> Of(uint32_t key) const;
  // kUnknown until the share is known well enough; then a level changes only when the share is clearly beyond
  // a border.
  Criticality LevelOf(uint32_t key) const;

 private:
  using Row = std::array<double, kMaxKeys>;

  Row RowOf(const std::map<uint32_t, double>& excess_ns);
  // Makes both the differences from what they were lately.
  void TakeLevelAway(Row& x, double& time);
  void Solve();
  void Rate();

  std::map<uint32_t, size_t> columns_;
  int since_ = 0;  // steps since ForgetLevel
  Row usual_{};
  double usual_ns_ = 0;
  std::array<Row, kMaxKeys> products_{};
  Row with_time_{};
  double squares_ = 0;
  double steps_ = 0;  // fading like the rest
  uint64_t taken_ = 0;
  Row slopes_{};
  Row errors_{};
  double deviation_ = 0;  // of a step's time from what is expected; 0: not known
  std::array<Criticality, kMaxKeys> levels_{};
};

}  // namespace dynamiccl
