// SPDX-License-Identifier: Apache-2.0
// What choices of configs cost against the best of the sweep. Everybody picks by one half of the repeats and
// is valued by the other, the oracle too: the minimum of noisy medians would flatter it otherwise.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "agents/config/swept_key.h"

namespace dynamiccl::agents {

// Who chooses: a name and a pure function. kLeaveNcclAlone means the library's default.
struct Chooser {
  std::string name;
  std::function<CollectiveConfig(const SweptKey&)> choose;
};

// Over the keys of one split, which weigh equally. Shares are of 1, regret 0.05 is 5 % slower than the
// oracle.
struct RegretSummary {
  std::string chooser;
  Split split = Split::kSeen;
  size_t keys = 0;
  double mean_regret = 0;
  double p95_regret = 0;
  double worst_regret = 0;
  double speed_up = 1;        // geometric mean of default's time / chosen time
  double share_changed = 0;   // keys where the choice is not the default
  double share_worse = 0;     // keys more than 5 % slower than the default
  double worst_slowdown = 0;  // largest (chosen time / default's time - 1)
};

// Valued time in microseconds. A config that the sweep did not measure, or that is the default's own, counts
// as default.
double ValueOf(const SweptKey& key, const CollectiveConfig& config);
// The best by the picking half, the default among them.
CollectiveConfig OracleChoice(const SweptKey& key);

// One summary for each chooser and split that has keys. Keys without a measured default are left out.
std::vector<RegretSummary> JudgeChoosers(const std::vector<SweptKey>& keys, const HoldOut& hold_out,
                                         const std::vector<Chooser>& choosers);

}  // namespace dynamiccl::agents
