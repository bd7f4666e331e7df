// SPDX-License-Identifier: Apache-2.0
// What choices of configurations cost, compared with the best of the sweep. Everybody, the oracle included,
// picks by one half of the repeats and is valued by the other; otherwise the minimum of noisy medians would
// flatter the oracle.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "agents/config/swept_key.h"
#include "src/base/statistics.h"

namespace dynamiccl::agents {

// The price of finding a choice: the calls that tried something, and by which share all calls, trials
// included, took longer than the default and than the oracle's choice.
struct ProbeCost {
  double probes = 0;
  double over_default = 0;
  double over_oracle = 0;
  // The largest share by which 20 steps in a row exceeded the default's mean, with all keys of the topology
  // called in turn.
  double worst_window = 0;
};

// A name and a pure function that chooses. kLeaveNcclAlone means the library's default. Choosers of equal
// names are the same thing, trained or run with another seed.
struct Chooser {
  std::string name;
  std::function<CollectiveConfig(const SweptKey&)> choose;
  // Only for choosers that try on the key itself.
  std::function<ProbeCost(const SweptKey&)> cost = {};
};

// Summary over the keys of one split, which weigh equally, and over the seeds. Shares are of 1; a regret of
// 0.05 is 5 % slower than the oracle. It is one record because it is one row of the report.
struct RegretSummary {
  std::string chooser;
  Split split = Split::kSeen;
  size_t keys = 0;
  size_t seeds = 0;
  double mean_regret = 0;
  ConfidenceInterval mean_interval;
  // Regret of the sums of all keys' times: a key weighs what it takes.
  double time_regret = 0;
  ConfidenceInterval time_interval;
  double p95_regret = 0;
  double worst_regret = 0;
  // Geometric mean of default's time / chosen time.
  double speed_up = 1;
  // Keys where the choice is not the default.
  double share_changed = 0;
  // Keys more than 5 % slower than the default.
  double share_worse = 0;
  // Number of keys, mean over seeds, for which the interval of the slowdown lies above 5 %. The intervals
  // hold for all keys of the split at once with 99 %.
  double surely_worse = 0;
  // Keys that take at least 1.3 times the best.
  double share_cliffs = 0;
  // The largest chosen time / default's time - 1.
  double worst_slowdown = 0;
  bool probes_itself = false;
  // Mean over keys; the worst window is that of all topologies.
  ProbeCost cost;
  // Median of the worst windows of the topologies.
  double median_window = 0;
  // Keys whose gain over the default, picked on one half and timed on the other, is at least three times the
  // key's noise, and the share of that gain which the chooser gets. The noise is 1.4826 times the median,
  // over the key's configurations, of how far the two halves of the repeats lie apart.
  size_t clear_keys = 0;
  double clear_gain_kept = 0;
  // The other keys, and how many of these (mean over seeds) the chooser makes slower than the default by more
  // than three times the noise.
  size_t other_keys = 0;
  double others_slower = 0;
};

// The valued time in microseconds. A configuration that the sweep did not measure, or that equals the
// default's own, counts as the default.
double ValueOf(const SweptKey& key, const CollectiveConfig& config);
// The best by the picking half, with the default among the candidates. The key must have a measured default.
CollectiveConfig OracleChoice(const SweptKey& key);

// The part of the data to which a key belongs.
using SplitFunction = std::function<Split(const SweptKey&)>;
// One summary for each name of a chooser and each split that has keys. Keys without a measured default are
// left out. Intervals come from 1000 draws of topologies, as blocks, and of seeds.
std::vector<RegretSummary> JudgeChoosersBy(const SplitFunction& split_of, const std::vector<SweptKey>& keys,
                                           const std::vector<Chooser>& choosers);
// The same with the splits of `hold_out`.
std::vector<RegretSummary> JudgeChoosers(const std::vector<SweptKey>& keys, const HoldOut& hold_out,
                                         const std::vector<Chooser>& choosers);

}  // namespace dynamiccl::agents
