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

// The largest number of channels to force. NCCL's choice has the largest number of a machine anyway.
constexpr int kMaxForcedChannels = 32;
// Stands for the time of a config that the collective does not have, or that was not tried.
constexpr double kNotTimed = std::numeric_limits<double>::infinity();

// CollNet algorithms need switches that reduce data.
bool NeedsSwitches(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kCollnetChain;
}

// True if NCCL has this algorithm and protocol for the collective.
bool Has(Collective collective, const CollectiveConfig& config) {
  return NcclConfigs(collective).test(ConfigIndex(config.algorithm, config.protocol));
}

// Rules choose a config by collective and size, not by ZeRO stage.
using SearchedKey = std::pair<Collective, SizeClass>;

// Returns for each key the time of each forced config as a share of the default's, or kNotTimed. The times of
// all ZeRO stages are added up.
std::map<SearchedKey, std::vector<double>> SharesOfDefault(const ForcedSearch& search) {
  std::map<SearchedKey, std::vector<double>> totals;
  for (const ComparedRow& row : search.comparison.rows) {
    if (static_cast<int>(row.what.collective) >= kTunableCollectives) continue;
    std::vector<double>& total = totals[{row.what.collective, row.what.size_class}];
    total.resize(search.forced.size() + 1);
    for (size_t i = 0; i < total.size(); ++i)
      total[i] += i < row.times.size() ? row.times[i].us_per_call.median * static_cast<double>(row.what.calls)
                                       : kNotTimed;
  }
  for (auto& [key, total] : totals) {
    for (size_t i = 1; i < total.size(); ++i)
      total[i] = Has(key.first, search.forced[i - 1]) ? total[i] / total[0] : kNotTimed;
    total.erase(total.begin());
  }
  return totals;
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

std::vector<CollectiveConfig> FurtherConfigs(const ForcedSearch& search) {
  std::vector<CollectiveConfig> configs;
  for (const auto& [key, shares] : SharesOfDefault(search)) {
    const auto best = std::min_element(shares.begin(), shares.end());
    if (best == shares.end() || *best == kNotTimed) continue;
    CollectiveConfig config = search.forced[static_cast<size_t>(best - shares.begin())];
    for (config.channels = 2; config.channels <= kMaxForcedChannels; config.channels *= 2)
      if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(config);
  }
  return configs;
}

std::string RulesOfFastest(const std::vector<ForcedSearch>& searches) {
  std::map<SearchedKey, std::pair<double, CollectiveConfig>> fastest;
  for (const ForcedSearch& search : searches) {
    for (const auto& [key, shares] : SharesOfDefault(search)) {
      auto& best = fastest.try_emplace(key, 1 - kLeastGain, kLeaveNcclAlone).first->second;
      for (size_t i = 0; i < shares.size(); ++i)
        if (shares[i] < best.first) best = {shares[i], search.forced[i]};
    }
  }
  std::string text = kRuleColumns;
  for (const auto& [key, best] : fastest)
    if (!best.second.leaves_nccl_alone()) text += RuleLine(key.first, key.second, best.second);
  return text;
}

}  // namespace dynamiccl
