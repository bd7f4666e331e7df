// SPDX-License-Identifier: Apache-2.0
// How far the model agrees with NVIDIA's own library: shares, and what differs.
#pragma once

#include <cstdio>
#include <map>
#include <string>

#include "src/cost_model/nccl_costs.h"
#include "traces/format/nccl_choices.h"

namespace dynamiccl {

struct Share {
  int right = 0;
  int all = 0;

  void Count(bool good) {
    right += good;
    ++all;
  }
  double percent() const { return all == 0 ? 100 : 100.0 * right / all; }
};

struct Agreement {
  Share costs;     // offered by both, within 1 %
  Share choices;   // algorithm and protocol
  Share channels;  // where the choice is right
  Share threads;
  std::map<std::string, int> misses;  // calls, by what differs

  void Count(Share* share, bool good, const std::string& what) {
    share->Count(good);
    if (!good) ++misses[what];
  }
};

// One call as the library priced and took it. A release that tells no table has no costs to compare; threads
// that are not known are 0.
void CompareCall(const NcclCommunicatorFacts& facts, Collective collective, const NcclCalls& calls,
                 const NcclCall& call, bool has_table, const std::string& where, Agreement* agreement);

void Print(const std::string& what, const Agreement& agreement);

}  // namespace dynamiccl
