// SPDX-License-Identifier: Apache-2.0
// Divides the time budget of a sweep among topologies. To switch to another topology, the ranks are launched
// anew.
#pragma once

#include <optional>
#include <vector>

#include "tools/bench/cell_choice.h"

namespace dynamiccl {

// Says how far the sweep of one topology is.
struct SweptTopology {
  bool begun = false;
  bool complete = false;
  // Value of NextCells::promise at the end of the topology's last slice: the gain expected of another second.
  double promise = 0;
};

// A slice of the budget in seconds, and the topology that gets it.
struct Slice {
  size_t topology = 0;
  double seconds = 0;
};

// Returns the next slice of the budget. Orders without a prediction give every topology an equal share.
// kActive first spends half of the budget in equal shares. Then it gives slices of at least `shortest_s`
// seconds to the topology with the greatest promise. Returns nothing when the budget is spent or every
// topology is complete.
std::optional<Slice> NextSlice(const std::vector<SweptTopology>& topologies, SweepOrder order,
                               double remaining_s, double shortest_s);

}  // namespace dynamiccl
