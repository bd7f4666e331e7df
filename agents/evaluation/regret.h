// SPDX-License-Identifier: Apache-2.0
// The cost of choosing configurations, compared with the best configurations of the sweep. Every chooser, the
// oracle included, picks on one half of the repeats and is evaluated on the other half. Otherwise the oracle
// would look too good, because the minimum of noisy medians is too low.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/statistics.h"

namespace dynamiccl::agents {

// The cost of finding a choice by trial: how many calls tried something, and by which share all calls, trials
// included, took longer than with the default and than with the oracle's choice.
struct ProbeCost {
  double probes = 0;
  double over_default = 0;
  double over_oracle = 0;
  // The largest share by which 20 consecutive steps exceeded the default's mean, when all keys of the
  // topology are called in turn.
  double worst_window = 0;
};

// A name and a pure function that chooses a config; kLeaveNcclAlone means the library's default. Choosers
// with equal names are the same method, trained or run with different seeds.
struct Chooser {
  std::string name;
  std::function<CollectiveConfig(const SweptKey&)> choose;
  // Set only for choosers that try configs on the key itself.
  std::function<ProbeCost(const SweptKey&)> cost = {};
};

// Summary over the keys of one split, with equal weights, and over the seeds. Shares are fractions of 1: a
// regret of 0.05 means 5 % slower than the oracle. The struct has many members because it is one row of the
// report.
struct RegretSummary {
  std::string chooser;
  Split split = Split::kSeen;
  size_t keys = 0;
  size_t seeds = 0;
  double mean_regret = 0;
  ConfidenceInterval mean_interval;
  // Regret of the total time of all keys. A key with a longer time thus counts more.
  double time_regret = 0;
  ConfidenceInterval time_interval;
  double p95_regret = 0;
  double worst_regret = 0;
  // Geometric mean over the keys of the default's time divided by the time of the choice.
  double speed_up = 1;
  // Share of keys for which the choice is not the default.
  double share_changed = 0;
  // Share of keys for which the choice is more than 5 % slower than the default.
  double share_worse = 0;
  // Number of keys, as a mean over seeds, for which the whole interval of the slowdown lies above 5 %. The
  // intervals hold for all keys of the split at once with 99 % confidence.
  double surely_worse = 0;
  // Share of keys for which the choice takes at least 1.3 times the oracle's time.
  double share_cliffs = 0;
  // The largest value over the keys of (time of the choice / time of the default) - 1.
  double worst_slowdown = 0;
  bool probes_itself = false;
  // Means over keys. Only `worst_window` is the largest value of all topologies.
  ProbeCost cost;
  // Median over the topologies of ProbeCost::worst_window.
  double median_window = 0;
  // A key is clear when its gain over the default, picked on one half and timed on the other, is at least
  // three times the key's noise. The noise is 1.4826 times the median, over the key's configurations, of the
  // difference between the two halves of the repeats. clear_gain_kept is the share of the clear keys' gain
  // that the chooser achieves.
  size_t clear_keys = 0;
  double clear_gain_kept = 0;
  // The number of keys whose gain over the default is below three times their noise, so that they are not
  // clear. The next member is how many of them (mean over seeds) the chooser makes slower than the default by
  // more than three times the noise.
  size_t other_keys = 0;
  double others_slower = 0;
};

// The time of a config on the evaluation half, in microseconds. A configuration that the sweep did not
// measure, or that equals the default's own, counts as the default.
double ValueOf(const SweptKey& key, const CollectiveConfig& config);
// The best config on the picking half, with the default among the candidates. The key must have a measured
// default.
CollectiveConfig OracleChoice(const SweptKey& key);

// The part of the data to which a key belongs.
using SplitFunction = std::function<Split(const SweptKey&)>;
// One summary for each name of a chooser and each split that has keys. Keys without a measured default are
// left out. Intervals come from 1000 draws of topologies, as blocks, and of seeds.
std::vector<RegretSummary> JudgeChoosers(const SplitFunction& split_of, const std::vector<SweptKey>& keys,
                                         const std::vector<Chooser>& choosers);

}  // namespace dynamiccl::agents
