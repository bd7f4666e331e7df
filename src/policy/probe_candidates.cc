// SPDX-License-Identifier: Apache-2.0
// Times are in octaves (log2) inside this file.
#include "src/policy/probe_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "src/policy/config_inference.h"

namespace dynamiccl {
namespace {

// Returns the config's predicted time: by NCCL's cost model, corrected by the policy. The correction is left
// out if an input lies outside of the range that the policy saw in training.
PricedConfig PriceOf(const Policy* policy, const ConfigContext& context, const ConfigAction& action) {
  const double prior = action.prior / 65536.0;
  const PricedConfig uncorrected{action.config, prior, prior};
  if (policy == nullptr) return uncorrected;
  const ConfigInputs inputs = context.Features(action);
  if (OutsideDomain(policy->tensors, inputs, 0, kConfigFeatures) >= 0) return uncorrected;
  return {action.config, prior, prior + MeanResidual(policy->tensors, inputs) / 65536.0};
}

// UnlikeFirst leaves a pair out if its best price is this many octaves (a factor of two) above that of NCCL's
// choice.
constexpr double kPlausible = 1;
// Number of places for the first group in the order of UnlikeFirst: the cheapest config of each pair of
// algorithm and protocol, and the one with a single channel. Configs with half of the channels follow from
// this place on, and all others from twice this place on.
constexpr int kExtremes = 2 * kAlgorithms * kProtocols;

using Pair = std::pair<Algorithm, Protocol>;

Pair PairOf(const CollectiveConfig& config) {
  return {config.algorithm, config.protocol};
}

// The rank of a pair of algorithm and protocol among all pairs of a key.
struct PairPlace {
  int place = 0;          // rank by the best price; NCCL's own pair comes first
  CollectiveConfig best;  // the pair's cheapest config
  double cheapest = 0;    // price of `best` over that of NCCL's choice, in octaves
};

// Returns the rank of every pair of a key. `key.others` must be sorted by price.
std::map<Pair, PairPlace> PlacesOf(const PricedKey& key, const CollectiveConfig& nccls) {
  std::map<Pair, PairPlace> pairs;
  int next = 1;
  for (const PricedConfig& one : key.others) {
    const bool of_nccl = !nccls.leaves_nccl_alone() && PairOf(nccls) == PairOf(one.config);
    const auto [pair, is_new] = pairs.try_emplace(PairOf(one.config));
    if (is_new) pair->second = {of_nccl ? 0 : next++, one.config, key.Over(one)};
  }
  return pairs;
}

}  // namespace

PricedKey PriceAll(const Policy* policy, const CostModelInput& input, const ConfigQuestion& question) {
  const ConfigContext context(input, question);
  const ConfigAction by_default = context.Price(context.default_config());
  if (by_default.prior <= 0) return {};
  PricedKey key{PriceOf(policy, context, by_default), {}};
  for (const ConfigAction& action : context.Actions()) {
    if (action.config != by_default.config) key.others.push_back(PriceOf(policy, context, action));
  }
  return key;
}

double Kinship(const CollectiveConfig& a, const CollectiveConfig& b) {
  const bool algorithm = a.algorithm == b.algorithm, protocol = a.protocol == b.protocol;
  if (!algorithm || !protocol) return algorithm || protocol ? 0.25 : 0.05;
  return 1 / (1 + std::abs(std::log2(double{1} * a.channels / b.channels)) / 2);
}

std::vector<ProbeCandidate> UnlikeFirst(const Policy* policy, const CostModelInput& input,
                                        const ConfigQuestion& question, const NcclsOwn& own) {
  PricedKey key = PriceAll(policy, input, question);
  if (!own.channels_are_known && key.by_default.by_model > 0) key.others.push_back(key.by_default);
  std::stable_sort(key.others.begin(), key.others.end(),
                   [](const PricedConfig& a, const PricedConfig& b) { return a.believed < b.believed; });
  const std::map<Pair, PairPlace> pairs = PlacesOf(key, own.pair);
  const int half = key.by_default.config.channels / 2;
  std::vector<std::pair<int, ProbeCandidate>> ordered;
  for (const PricedConfig& one : key.others) {
    const PairPlace& pair = pairs.at(PairOf(one.config));
    const bool of_nccl = !own.pair.leaves_nccl_alone() && PairOf(own.pair) == PairOf(one.config);
    if (pair.cheapest > kPlausible && !of_nccl) continue;
    const bool best = one.config == pair.best;
    int place = 2 * kExtremes;
    if (best || one.config.channels == 1)
      place = 2 * pair.place + (best ? 0 : 1);
    else if (one.config.channels == half)
      place = kExtremes + pair.place;
    ordered.emplace_back(place, ProbeCandidate{one.config, std::exp2(key.Over(one)), of_nccl});
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ProbeCandidate> candidates;
  for (auto& [place, candidate] : ordered) candidates.push_back(candidate);
  return candidates;
}

}  // namespace dynamiccl
