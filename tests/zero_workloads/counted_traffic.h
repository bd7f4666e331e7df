// SPDX-License-Identifier: Apache-2.0
// Counts what the ranks of a small training send at the NCCL boundary.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {

struct Traffic {
  long calls = 0;
  long elements = 0;
};
// By function. The names are those of count_nccl.cc.
using TrafficByFunction = std::map<std::string, Traffic>;

// Runs TrainSmall with a counter in each rank. Returns the counts of each rank; the order of ranks is random.
std::vector<TrafficByFunction> CountTraffic(int ranks, const std::vector<std::string>& arguments,
                                            std::map<std::string, std::string> environment = {});

}  // namespace dynamiccl::zero
