// SPDX-License-Identifier: Apache-2.0
// Each chooser is a closure over what it learned from the seen keys. A choice that was not measured at the
// judged key counts as the default.
#include "studies/agents/baselines/config_baselines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "src/policy/config_inference.h"

namespace dynamiccl::agents {
namespace {

double Octaves(double a, double b) {
  return std::abs(std::log2(a) - std::log2(b));
}

// The distance between two keys, in octaves of bytes, ranks and nodes.
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

// Mean of log(time / default's time) over the keys of the collective; empty if a key lacks the configuration.
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

// Sum of log2(time / default's time) of one configuration, and the number of keys in the sum.
struct MeanGain {
  double sum = 0;
  int keys = 0;
};

// Finds the best configuration over the added keys: the least mean among the configurations that all keys
// have, or the default if none is faster.
class BestOfMany {
 public:
  void Add(const SweptKey& key) {
    ++keys_;
    for (const SweptConfig& swept : key.configs) {
      MeanGain& gain = gains_[{swept.config.algorithm, swept.config.protocol, swept.config.channels}];
      gain.sum += std::log2(swept.time.pick / key.default_choice->time.pick);
      ++gain.keys;
    }
  }
  CollectiveConfig Best() const {
    CollectiveConfig best = kLeaveNcclAlone;
    double least = 0;
    for (const auto& [config, gain] : gains_) {
      if (gain.keys != keys_ || gain.sum >= least) continue;
      least = gain.sum;
      best = {std::get<0>(config), std::get<1>(config), std::get<2>(config)};
    }
    return best;
  }

 private:
  std::map<std::tuple<Algorithm, Protocol, uint8_t>, MeanGain> gains_;
  int keys_ = 0;
};

using Shape = std::tuple<Collective, int, int>;
Shape ShapeOf(const SweptKey& key) {
  return {key.question.collective, key.model.fabric.n_nodes, key.model.fabric.n_ranks};
}

using PairFactors = std::map<std::pair<Algorithm, Protocol>, std::pair<double, int>>;

void AddFactors(const SweptKey& key, PairFactors& factors) {
  const ConfigContext context(key.model, key.question);
  for (const SweptConfig& swept : key.configs) {
    const ConfigAction action = context.Price(swept.config);
    if (action.prior <= 0) continue;
    auto& [sum, count] = factors[{swept.config.algorithm, swept.config.protocol}];
    sum += std::log2(swept.time.pick * 1e6) - action.prior / 65536.0;
    ++count;
  }
}

CollectiveConfig ChooseByFactors(const SweptKey& key, const PairFactors& factors) {
  const ConfigContext context(key.model, key.question);
  CollectiveConfig best = kLeaveNcclAlone;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [pair, factor] : factors) {
    if (!key.question.allowed.test(ConfigIndex(pair.first, pair.second))) continue;
    const ConfigAction action = context.Price({pair.first, pair.second, 0});
    const double log2 = action.prior / 65536.0 + factor.first / factor.second;
    if (action.prior <= 0 || log2 >= least) continue;
    least = log2;
    best = action.config;
  }
  return best;
}

// NCCL's number of channels may not have been measured. The nearest measured number, in octaves, is then
// taken.
CollectiveConfig NearestMeasured(const SweptKey& key, const CollectiveConfig& config) {
  const SweptConfig* nearest = nullptr;
  for (const SweptConfig& swept : key.configs) {
    if (swept.config.algorithm != config.algorithm || swept.config.protocol != config.protocol) continue;
    if (nearest == nullptr ||
        Octaves(swept.config.channels, config.channels) < Octaves(nearest->config.channels, config.channels))
      nearest = &swept;
  }
  return nearest == nullptr ? kLeaveNcclAlone : nearest->config;
}

}  // namespace

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

Chooser CsvRulesChooser(const std::vector<SweptKey>& seen) {
  std::map<Shape, std::map<uint64_t, BestOfMany>> sizes;
  for (const SweptKey& key : seen) {
    if (key.default_choice) sizes[ShapeOf(key)][key.question.bytes].Add(key);
  }
  std::map<Shape, std::map<uint64_t, CollectiveConfig>> rules;
  for (const auto& [shape, by_size] : sizes) {
    for (const auto& [bytes, many] : by_size) rules[shape][bytes] = many.Best();
  }
  return {"CSV rules", [rules](const SweptKey& key) {
            const auto found = rules.find(ShapeOf(key));
            if (found == rules.end()) return kLeaveNcclAlone;
            const auto distance = [&](uint64_t bytes) {
              return Octaves(static_cast<double>(bytes) + 1, static_cast<double>(key.question.bytes) + 1);
            };
            const auto nearest = std::min_element(
                found->second.begin(), found->second.end(),
                [&](const auto& a, const auto& b) { return distance(a.first) < distance(b.first); });
            return WasMeasured(key, nearest->second) ? nearest->second : kLeaveNcclAlone;
          }};
}

Chooser CalibratedDefaultChooser(const std::vector<SweptKey>& seen) {
  std::map<std::string, PairFactors> by_topology;
  PairFactors all;
  for (const SweptKey& key : seen) {
    AddFactors(key, by_topology[key.topology]);
    AddFactors(key, all);
  }
  return {"calibrated default", [by_topology, all](const SweptKey& key) {
            const auto own = by_topology.find(key.topology);
            return NearestMeasured(key, ChooseByFactors(key, own == by_topology.end() ? all : own->second));
          }};
}

std::vector<Chooser> RuleChoosers(const std::vector<SweptKey>& seen) {
  return {{"default", [](const SweptKey&) { return kLeaveNcclAlone; }},
          CalibratedDefaultChooser(seen),
          BestStaticChooser(seen),
          CsvRulesChooser(seen),
          NearestKeyChooser(seen),
          {"oracle", OracleChoice}};
}

}  // namespace dynamiccl::agents
