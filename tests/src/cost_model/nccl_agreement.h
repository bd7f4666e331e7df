// SPDX-License-Identifier: Apache-2.0
// Measures how far the model agrees with NVIDIA's own library, as shares, and counts what differs.
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
  Share costs;     // Of the pairs that both offer, the share whose costs agree within 1 %.
  Share choices;   // The share of calls with the same algorithm and protocol.
  Share channels;  // Of the calls with a right choice, the share with the same channels.
  Share threads;
  std::map<std::string, int> misses;  // Counts calls by the property that differs.

  void Count(Share* share, bool good, const std::string& what) {
    share->Count(good);
    if (!good) ++misses[what];
  }
};

// Compares one call as the library priced and chose it. A release without a table has no costs to compare. An
// unknown number of threads is 0.
void CompareCall(const NcclCommunicatorFacts& facts, Collective collective, const NcclCalls& calls,
                 const NcclCall& call, bool has_table, const std::string& where, Agreement* agreement);

void Print(const std::string& what, const Agreement& agreement);

}  // namespace dynamiccl
