// SPDX-License-Identifier: Apache-2.0
// Spreads a sweep's budget over topologies, each of which needs a launch.
#pragma once

#include <optional>
#include <vector>

#include "tools/bench/cell_choice.h"

namespace dynamiccl {

// The progress of the sweep of one topology.
struct SweptTopology {
  bool begun = false;
  bool complete = false;
  // NextCells::promise at the end of its last slice.
  double promise = 0;
};

// The next piece of the budget and the topology that gets it.
struct Slice {
  size_t topology = 0;
  double seconds = 0;
};

// Blind orders give every topology an equal share. kActive first spends half of the budget in equal shares,
// then gives slices to the topology with the greatest promise, none shorter than `shortest_s`. Returns
// nothing when the budget is spent or everything is complete.
std::optional<Slice> NextSlice(const std::vector<SweptTopology>& topologies, SweepOrder order,
                               double remaining_s, double shortest_s);

}  // namespace dynamiccl
