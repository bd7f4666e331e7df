// SPDX-License-Identifier: Apache-2.0
// Plans what a sweep measures and how often. All functions are pure, so every rank computes the same plan.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {

// One thing to time. The default has kLeaveNcclAlone: nothing is forced.
struct PlannedCell {
  Collective collective = Collective::kAllReduce;
  // NCCL's total: whole elements times ranks.
  uint64_t bytes = 0;
  CollectiveConfig config;
  // Calls in a sample, set once the cell's time is known.
  int iterations = 1;

  bool is_default() const { return config.leaves_nccl_alone(); }
};

// Input of PlanSweep.
struct SweepScope {
  std::vector<Collective> collectives;
  std::vector<uint64_t> sizes;
  int n_ranks = 1;
  int max_channels = 1;
  // The (algorithm, protocol) pairs that the library offers for a collective and size.
  std::function<ConfigMask(Collective, uint64_t)> allowed;
};

// Returns, for each collective and size, the default and then every legal config. Default and configs of one
// size are measured one after the other, so that noise affects them alike. Sizes are rounded down to whole
// float32 elements on each rank; sizes that become 0 or equal to another are dropped.
std::vector<PlannedCell> PlanSweep(const SweepScope& scope);

// Calls that a sample needs to last `target_us`, when one takes `call_us`: 1 to 32. Small messages need many,
// since a clock read and a wake-up cost as much as the call.
int IterationsFor(double call_us, double target_us);

// Repeats that fit the budget for a round of `round_us`: between 2 and `wanted`.
int RepeatsWithin(double budget_us, double round_us, int wanted);

// One past the last cell of the group (same collective and size) that contains `position`.
size_t GroupEnd(const std::vector<PlannedCell>& cells, size_t position);

// The cell that is timed at `position` of `round`. Each round starts a group at another cell, so that no
// config always follows the same one.
size_t RotatedIndex(const std::vector<PlannedCell>& cells, size_t position, int round);

}  // namespace dynamiccl
