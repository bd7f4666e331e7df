// SPDX-License-Identifier: Apache-2.0
// Finds the best config for each collective and size class, from replays of a trace in which each config is
// forced.
#include "tools/replay/replay_comparison.h"

#include <algorithm>
#include <limits>
#include <map>

#include "src/collective/legal_configs.h"
#include "tools/report/best_rules.h"

namespace dynamiccl {
namespace {

// A config must be faster than the default by at least this share of the default's time, or NCCL keeps the
// choice.
constexpr double kLeastGain = 0.03;

// CollNet algorithms need switches that reduce data.
bool NeedsSwitches(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kCollnetChain;
}

// True if NCCL has this algorithm and protocol for the collective.
bool Has(Collective collective, const CollectiveConfig& config) {
  return NcclConfigs(collective).test(ConfigIndex(config.algorithm, config.protocol));
}

}  // namespace

std::vector<CollectiveConfig> ConfigsToForce(const ReplayPlan& plan) {
  ConfigMask mask;
  for (const ReplayGroup& group : plan.groups) {
    for (const TraceCall& call : group.calls) {
      const Collective collective = call.issued.call.collective;
      if (static_cast<int>(collective) < kTunableCollectives) mask |= NcclConfigs(collective);
    }
  }
  std::vector<CollectiveConfig> configs;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      CollectiveConfig config{static_cast<Algorithm>(a), static_cast<Protocol>(p), 0};
      if (!mask.test(ConfigIndex(config.algorithm, config.protocol)) || NeedsSwitches(config.algorithm))
        continue;
      configs.push_back(config);
      config.channels = 1;
      if (config.protocol == Protocol::kSimple) configs.push_back(config);
    }
  }
  return configs;
}

std::string RulesThatForce(const CollectiveConfig& config) {
  std::string text = kRuleColumns;
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (Has(collective, config))
      text += RuleLine(collective, 0, std::numeric_limits<uint64_t>::max(), config);
  }
  return text;
}

std::string RulesOfFastest(const ReplayComparison& comparison, const std::vector<CollectiveConfig>& forced) {
  // Rules choose a config by collective and size, not by ZeRO stage, so the times of all stages are added up.
  std::map<std::pair<Collective, SizeClass>, std::vector<double>> totals;
  for (const ComparedRow& row : comparison.rows) {
    if (static_cast<int>(row.what.collective) >= kTunableCollectives) continue;
    std::vector<double>& total = totals[{row.what.collective, row.what.size_class}];
    total.resize(row.times.size());
    for (size_t i = 0; i < row.times.size(); ++i)
      total[i] += row.times[i].us_per_call.median * static_cast<double>(row.what.calls);
  }
  std::string text = kRuleColumns;
  for (const auto& [key, times] : totals) {
    size_t best = 0;
    for (size_t i = 1; i < times.size(); ++i) {
      if (Has(key.first, forced[i - 1]) && times[i] < times[best]) best = i;
    }
    if (best > 0 && times[best] < times[0] * (1 - kLeastGain))
      text += RuleLine(key.first, key.second, forced[best - 1]);
  }
  return text;
}

}  // namespace dynamiccl
