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

// What finding a choice cost: calls that tried something, and how much longer all calls took, trials
// included, than the default and than the oracle's choice would have, as shares.
struct ProbeCost {
  double probes = 0;
  double over_default = 0;
  double over_oracle = 0;
  // The most that 20 steps in a row took over the default's mean, all keys of the topology called in turn.
  double worst_window = 0;
};

// Who chooses: a name and a pure function. kLeaveNcclAlone means the library's default. Choosers of one name
// are the same thing trained or run with another seed.
struct Chooser {
  std::string name;
  std::function<CollectiveConfig(const SweptKey&)> choose;
  std::function<ProbeCost(const SweptKey&)> cost = {};  // of those that try on the key itself
};

// 95 % of the bootstrap's draws lie within.
struct Interval {
  double low = 0;
  double high = 0;
};

// Over the keys of one split, which weigh equally, and over the seeds. Shares are of 1, regret 0.05 is 5 %
// slower than the oracle.
struct RegretSummary {
  std::string chooser;
  Split split = Split::kSeen;
  size_t keys = 0;
  size_t seeds = 0;
  double mean_regret = 0;
  Interval mean_interval;
  double time_regret = 0;  // of the sums of all keys' times: a key weighs what it takes
  Interval time_interval;
  double p95_regret = 0;
  double worst_regret = 0;
  double speed_up = 1;       // geometric mean of default's time / chosen time
  double share_changed = 0;  // keys where the choice is not the default
  double share_worse = 0;    // keys more than 5 % slower than the default
  // Keys, mean over seeds, for which the interval of the slowdown lies above 5 %: intervals that hold for all
  // keys of the split at once with 99 %.
  double surely_worse = 0;
  double share_cliffs = 0;    // keys that take 1.3 times the best or more
  double worst_slowdown = 0;  // largest (chosen time / default's time - 1)
  bool probes_itself = false;
  ProbeCost cost;            // mean over keys; the worst window of all topologies
  double median_window = 0;  // of the worst windows of each topology
  // Keys whose gain over the default, picked on one half and timed on the other, is at least three times the
  // key's noise, and the share of it that the chooser has; of the others, those that the chooser makes slower
  // than the default by more than three times the noise. Noise: 1.4826 times the median over the key's
  // configs of how far the two halves of its repeats lie apart.
  size_t clear_keys = 0;
  double clear_gain_kept = 0;
  size_t other_keys = 0;
  double others_slower = 0;  // mean over seeds
};

// Valued time in microseconds. A config that the sweep did not measure, or that is the default's own, counts
// as default.
double ValueOf(const SweptKey& key, const CollectiveConfig& config);
// The best by the picking half, the default among them.
CollectiveConfig OracleChoice(const SweptKey& key);

// One summary for each name of a chooser and split that has keys. Keys without a measured default are left
// out. `split_of` says where a key belongs. Intervals: 1000 draws of topologies as blocks, and of seeds.
using SplitFunction = std::function<Split(const SweptKey&)>;
std::vector<RegretSummary> JudgeChoosersBy(const SplitFunction& split_of, const std::vector<SweptKey>& keys,
                                           const std::vector<Chooser>& choosers);
std::vector<RegretSummary> JudgeChoosers(const std::vector<SweptKey>& keys, const HoldOut& hold_out,
                                         const std::vector<Chooser>& choosers);

}  // namespace dynamiccl::agents
