// SPDX-License-Identifier: Apache-2.0
// Spreads a sweep's budget over topologies, each of which needs a launch.
#pragma once

#include <optional>
#include <vector>

#include "tools/bench/cell_choice.h"

namespace dynamiccl {

// How far the sweep of one topology has come.
struct SweptTopology {
  bool begun = false;
  bool complete = false;
  // NextCells::promise at the end of its last slice.
  double promise = 0;
};

// The next piece of budget and who gets it.
struct Slice {
  size_t topology = 0;
  double seconds = 0;
};

// Blind orders give equal shares. kActive gives every topology an equal share of half the budget, then slices
// to the topology of greatest promise, none shorter than `shortest_s`. Nothing is returned when the budget is
// spent or everything is complete.
std::optional<Slice> NextSlice(const std::vector<SweptTopology>& topologies, SweepOrder order,
                               double remaining_s, double shortest_s);

}  // namespace dynamiccl
