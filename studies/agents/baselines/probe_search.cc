// SPDX-License-Identifier: Apache-2.0
// Times are in octaves (log2) inside this file.
#include "studies/agents/baselines/probe_search.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl::agents {
namespace {

// Returns whether two configurations differ only in their channels, and these by a factor of two.
bool IsNeighbour(const CollectiveConfig& config, const CollectiveConfig& best) {
  if (config.algorithm != best.algorithm || config.protocol != best.protocol) return false;
  return config.channels == best.channels * 2 || config.channels * 2 == best.channels;
}

// These numbers and those of Kinship were chosen on simulated clusters. These clusters are not used for any
// result in docs/results.
constexpr double kCarriedOver = 0.7;   // share of a relative's error that is carried over
constexpr double kPriorWeight = 0.35;  // weight of the prediction itself, beside its relatives
constexpr double kMargin = 1;  // octaves by which a prediction may exceed what is in use and still be tried

// A configuration that was measured.
struct SeenConfig {
  CollectiveConfig config;
  double off = 0;  // log2(measured / predicted)
};

// Returns the measured configurations. NCCL's choice comes first with an error of 0, because all times are
// relative to it.
std::vector<SeenConfig> SeenOf(const PricedKey& key, const std::vector<TriedConfig>& tried) {
  std::vector<SeenConfig> seen{{key.by_default.config, 0}};
  for (const TriedConfig& one : tried) {
    const auto same = [&](const PricedConfig& known) { return known.config == one.config; };
    const auto known = std::find_if(key.others.begin(), key.others.end(), same);
    if (known != key.others.end()) seen.push_back({one.config, std::log2(one.ratio) - key.Over(*known)});
  }
  return seen;
}

// Returns the correction of a prediction, as log2: the weighted mean of the errors of similar configurations.
double OffByKin(const CollectiveConfig& config, const std::vector<SeenConfig>& seen) {
  double sum = 0, weights = kPriorWeight;
  for (const SeenConfig& one : seen) {
    const double weight = Kinship(config, one.config);
    sum += weight * one.off;
    weights += weight;
  }
  return kCarriedOver * sum / weights;
}

// Selects one of the two predictions.
using Belief = double PricedConfig::*;

// Sorts `priced` by `belief`. Equal elements keep their order.
void SortBy(Belief belief, std::vector<PricedConfig>& priced) {
  std::stable_sort(priced.begin(), priced.end(),
                   [belief](const PricedConfig& a, const PricedConfig& b) { return a.*belief < b.*belief; });
}

}  // namespace

std::vector<ProbeCandidate> FirstCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model) {
  PricedKey key = PriceAll(policy, input, question);
  SortBy(&PricedConfig::by_model, key.others);
  std::vector<CollectiveConfig> of_model;
  for (size_t i = 0; i < std::min(best_of_model, key.others.size()); ++i)
    of_model.push_back(key.others[i].config);
  SortBy(&PricedConfig::believed, key.others);
  std::vector<ProbeCandidate> candidates;
  for (size_t i = 0; i < key.others.size(); ++i) {
    const CollectiveConfig& config = key.others[i].config;
    if (i < kBestOfPrior || IsNeighbour(config, key.others[0].config) ||
        std::find(of_model.begin(), of_model.end(), config) != of_model.end())
      candidates.push_back({config, std::exp2(key.Over(key.others[i]))});
  }
  return candidates;
}

std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most) {
  const PricedKey key = PriceAll(policy, input, question);
  const std::vector<SeenConfig> seen = SeenOf(key, tried);
  std::vector<ProbeCandidate> candidates;
  for (const PricedConfig& one : key.others) {
    const auto same = [&](const SeenConfig& other) { return other.config == one.config; };
    if (std::any_of(seen.begin(), seen.end(), same)) continue;
    const double believed = key.Over(one) + OffByKin(one.config, seen);
    if (believed < std::log2(in_use) + kMargin) candidates.push_back({one.config, std::exp2(believed)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  if (candidates.size() > most) candidates.resize(most);
  return candidates;
}

}  // namespace dynamiccl::agents
