// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/regret.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl::agents {
namespace {

// What counts as worse than the default: repeats of the same cell differ by up to this.
constexpr double kWorse = 0.05;

struct KeyOutcome {
  double regret = 0;
  double over_default = 1;  // chosen time / default's time
  bool changed = false;
};

KeyOutcome OutcomeOf(const SweptKey& key, const Chooser& chooser) {
  const CollectiveConfig config = chooser.choose(key);
  const double chosen = ValueOf(key, config), standard = key.default_choice->time.value;
  return {chosen / ValueOf(key, OracleChoice(key)) - 1, chosen / standard,
          !config.leaves_nccl_alone() && !(config == key.default_choice->config)};
}

RegretSummary Summarise(const std::vector<KeyOutcome>& outcomes) {
  RegretSummary summary;
  summary.keys = outcomes.size();
  const auto count = static_cast<double>(outcomes.size());
  std::vector<double> regrets;
  double log_speed_up = 0;
  for (const KeyOutcome& outcome : outcomes) {
    regrets.push_back(outcome.regret);
    summary.mean_regret += outcome.regret / count;
    log_speed_up -= std::log(outcome.over_default) / count;
    summary.share_changed += outcome.changed / count;
    summary.share_worse += (outcome.over_default > 1 + kWorse) / count;
    summary.worst_slowdown = std::max(summary.worst_slowdown, outcome.over_default - 1);
  }
  std::sort(regrets.begin(), regrets.end());
  summary.p95_regret = regrets[static_cast<size_t>(0.95 * static_cast<double>(regrets.size() - 1))];
  summary.worst_regret = regrets.back();
  summary.speed_up = std::exp(log_speed_up);
  return summary;
}

}  // namespace

double ValueOf(const SweptKey& key, const CollectiveConfig& config) {
  if (!(config == key.default_choice->config)) {
    for (const SweptConfig& swept : key.configs) {
      if (swept.config == config) return swept.time.value;
    }
  }
  return key.default_choice->time.value;
}

CollectiveConfig OracleChoice(const SweptKey& key) {
  CollectiveConfig best = kLeaveNcclAlone;
  double least = key.default_choice->time.pick;
  for (const SweptConfig& swept : key.configs) {
    if (swept.time.pick >= least) continue;
    least = swept.time.pick;
    best = swept.config;
  }
  return best;
}

std::vector<RegretSummary> JudgeChoosers(const std::vector<SweptKey>& keys, const HoldOut& hold_out,
                                         const std::vector<Chooser>& choosers) {
  std::vector<RegretSummary> summaries;
  for (int split = 0; split < kSplits; ++split) {
    for (const Chooser& chooser : choosers) {
      std::vector<KeyOutcome> outcomes;
      for (const SweptKey& key : keys) {
        const bool counts = key.default_choice && SplitOf(key, hold_out) == static_cast<Split>(split);
        if (counts) outcomes.push_back(OutcomeOf(key, chooser));
      }
      if (outcomes.empty()) continue;
      summaries.push_back(Summarise(outcomes));
      summaries.back().chooser = chooser.name;
      summaries.back().split = static_cast<Split>(split);
    }
  }
  return summaries;
}

}  // namespace dynamiccl::agents
