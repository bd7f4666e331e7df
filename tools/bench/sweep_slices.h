// SPDX-License-Identifier: Apache-2.0
// How a sweep's budget is spread over topologies, each of which needs a launch.
#pragma once

#include <optional>
#include <vector>

#include "tools/bench/cell_choice.h"

namespace dynamiccl {

struct SweptTopology {
  bool begun = false;
  bool complete = false;
  double promise = 0;  // NextCells::promise at the end of its last slice
};

struct Slice {
  size_t topology = 0;
  double seconds = 0;
};

// Blind orders give equal shares. kActive gives every topology an equal share of half the budget, then slices
// to the one of greatest promise, none shorter than `shortest_s`. Nothing: the budget is spent, or all is
// complete.
std::optional<Slice> NextSlice(const std::vector<SweptTopology>& topologies, SweepOrder order,
                               double remaining_s, double shortest_s);

}  // namespace dynamiccl
