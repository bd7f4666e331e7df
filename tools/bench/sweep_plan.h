// SPDX-License-Identifier: Apache-2.0
// Plans what a sweep measures and how often. All functions are pure, so every rank computes the same plan.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {

// A cell of a sweep: a collective and size, timed with `config`. In the default cell, `config` is
// kLeaveNcclAlone: the library chooses for itself.
struct PlannedCell {
  Collective collective = Collective::kAllReduce;
  // Size of the call as NCCL counts it over all ranks: a whole number of elements on each rank.
  uint64_t bytes = 0;
  CollectiveConfig config;
  // Number of calls in one sample, set once the time of a call is known.
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

// Returns for each collective and size the default (the library's own choice), and then every legal config.
// The cells of one size are measured one after the other, so that noise affects them alike. Sizes are rounded
// down to whole float32 elements on each rank. A size that becomes 0 or equal to another one is dropped.
std::vector<PlannedCell> PlanSweep(const SweepScope& scope);

// Returns the number of calls that take `target_us` if one takes `call_us`: 1 to 32. A sample of small
// messages needs many calls, since a clock read and a wake-up cost as much as one call.
int IterationsFor(double call_us, double target_us);

// Returns the number of rounds of `round_us` each that fit the budget, but at least 2 and at most `wanted`.
int RepeatsWithin(double budget_us, double round_us, int wanted);

// Returns the index after the last cell of the group that contains `position`. A group is one collective and
// size.
size_t GroupEnd(const std::vector<PlannedCell>& cells, size_t position);

// Returns the cell that is timed at `position` of `round`. Each round starts a group (one collective and
// size) with another cell, so that no config always follows the same one.
size_t RotatedIndex(const std::vector<PlannedCell>& cells, size_t position, int round);

}  // namespace dynamiccl
