// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/config_baselines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "src/policy/config_inference.h"

namespace dynamiccl::agents {
namespace {

double Octaves(double a, double b) {
  return std::abs(std::log2(a) - std::log2(b));
}

double Distance(const SweptKey& a, const SweptKey& b) {
  const Fabric &f = a.model.fabric, &g = b.model.fabric;
  return Octaves(static_cast<double>(a.question.bytes) + 1, static_cast<double>(b.question.bytes) + 1) +
         Octaves(f.n_ranks, g.n_ranks) + Octaves(f.n_nodes, g.n_nodes);
}

bool WasMeasured(const SweptKey& key, const CollectiveConfig& config) {
  for (const SweptConfig& swept : key.configs) {
    if (swept.config == config) return true;
  }
  return false;
}

// Mean log(time / default's time) over the keys of the collective; nothing where a key lacks the config.
std::optional<double> MeanLogTime(const std::vector<SweptKey>& seen, Collective collective,
                                  const CollectiveConfig& config) {
  double sum = 0;
  size_t keys = 0;
  for (const SweptKey& key : seen) {
    if (key.question.collective != collective || !key.default_choice) continue;
    const auto swept = std::find_if(key.configs.begin(), key.configs.end(),
                                    [&](const SweptConfig& candidate) { return candidate.config == config; });
    if (swept == key.configs.end()) return std::nullopt;
    sum += std::log(swept->time.pick / key.default_choice->time.pick);
    ++keys;
  }
  if (keys == 0) return std::nullopt;
  return sum / static_cast<double>(keys);
}

CollectiveConfig BestStatic(const std::vector<SweptKey>& seen, Collective collective) {
  CollectiveConfig best = kLeaveNcclAlone;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveConfig& config : EnumerateConfigs(NcclConfigs(collective), 64)) {
    const auto mean = MeanLogTime(seen, collective, config);
    if (!mean || *mean >= least) continue;
    least = *mean;
    best = config;
  }
  return best;
}

// The policy with a gate that everything passes: the least predicted mean wins.
Chooser UngatedChooser(const Policy& policy) {
  const auto ungated = std::make_shared<Policy>(policy);
  ungated->tensors.config.gate = std::numeric_limits<int32_t>::min();
  return {"policy without gate",
          [ungated](const SweptKey& key) { return ChooseConfig(*ungated, key.model, key.question).config; }};
}

}  // namespace

Chooser PolicyChooser(const Policy& policy) {
  return {"policy",
          [&policy](const SweptKey& key) { return ChooseConfig(policy, key.model, key.question).config; }};
}

Chooser NearestKeyChooser(const std::vector<SweptKey>& seen) {
  return {"nearest-key table", [&seen](const SweptKey& key) {
            const SweptKey* nearest = nullptr;
            for (const SweptKey& other : seen) {
              if (other.question.collective != key.question.collective || !other.default_choice) continue;
              if (nearest == nullptr || Distance(key, other) < Distance(key, *nearest)) nearest = &other;
            }
            if (nearest == nullptr) return kLeaveNcclAlone;
            const CollectiveConfig choice = OracleChoice(*nearest);
            return WasMeasured(key, choice) ? choice : kLeaveNcclAlone;
          }};
}

Chooser BestStaticChooser(const std::vector<SweptKey>& seen) {
  std::array<CollectiveConfig, kTunableCollectives> best;
  for (size_t c = 0; c < best.size(); ++c) best[c] = BestStatic(seen, static_cast<Collective>(c));
  return {"best static config", [best](const SweptKey& key) {
            const CollectiveConfig choice = best[static_cast<size_t>(key.question.collective)];
            return WasMeasured(key, choice) ? choice : kLeaveNcclAlone;
          }};
}

std::vector<Chooser> AllChoosers(const Policy& policy, const std::vector<SweptKey>& seen) {
  return {{"default", [](const SweptKey&) { return kLeaveNcclAlone; }},
          PolicyChooser(policy),
          UngatedChooser(policy),
          NearestKeyChooser(seen),
          BestStaticChooser(seen),
          {"oracle", OracleChoice}};
}

}  // namespace dynamiccl::agents
