// SPDX-License-Identifier: Apache-2.0
// Prices all configurations of a key by the model and by the policy, and selects those worth a trial. Times
// are in octaves (log2) inside this file.
#include "src/policy/probe_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "src/policy/config_inference.h"

namespace dynamiccl {
namespace {

// A configuration with its two predictions, log2 of picoseconds.
struct Priced {
  CollectiveConfig config;
  double by_model = 0;  // by NCCL's cost model
  double believed = 0;  // the same, corrected by the policy where it applies
  bool worth_trying = false;
};

// Returns the config's predicted time: by NCCL's cost model, corrected by the policy. The correction is left
// out if an input lies outside of the range that the policy saw in training.
Priced PriceOf(const Policy* policy, const ConfigContext& context, const ConfigAction& action) {
  const double prior = action.prior / 65536.0;
  const Priced uncorrected{action.config, prior, prior};
  if (policy == nullptr) return uncorrected;
  const ConfigInputs inputs = context.Features(action);
  if (OutsideDomain(policy->tensors, inputs, 0, kConfigFeatures) >= 0) return uncorrected;
  return {action.config, prior, prior + MeanResidual(policy->tensors, inputs) / 65536.0};
}

// Returns whether two configurations differ only in their channels, and these by a factor of two.
bool IsNeighbour(const CollectiveConfig& config, const CollectiveConfig& best) {
  if (config.algorithm != best.algorithm || config.protocol != best.protocol) return false;
  return config.channels == best.channels * 2 || config.channels * 2 == best.channels;
}

// Selects one of the two predictions.
using Belief = double Priced::*;

// Sorts `priced` by `belief`, keeping the order of equals, and marks the first `count` as worth trying.
void TakeBest(size_t count, Belief belief, std::vector<Priced>& priced) {
  std::stable_sort(priced.begin(), priced.end(),
                   [belief](const Priced& a, const Priced& b) { return a.*belief < b.*belief; });
  for (size_t i = 0; i < std::min(count, priced.size()); ++i) priced[i].worth_trying = true;
}

// The prices of NCCL's choice and of every other configuration of a key. Empty if the cost model cannot price
// NCCL's choice.
struct PricedKey {
  Priced by_default;
  std::vector<Priced> others;

  // Returns log2 of the predicted time over that of NCCL's choice.
  double Over(const Priced& one) const { return one.believed - by_default.believed; }
};

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

// These numbers and those of Kinship were chosen on simulated clusters that are not used for any result in
// docs/results.
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
    const auto same = [&](const Priced& known) { return known.config == one.config; };
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
  int place = 0;          // by the best price; NCCL's own pair is the first
  CollectiveConfig best;  // its cheapest config
  double cheapest = 0;    // price of `best` over that of NCCL's choice, in octaves
};

// Returns the rank of every pair of a key. `key.others` must be sorted by price.
std::map<Pair, PairPlace> PlacesOf(const PricedKey& key, const CollectiveConfig& nccls) {
  std::map<Pair, PairPlace> pairs;
  int next = 1;
  for (const Priced& one : key.others) {
    const bool of_nccl = !nccls.leaves_nccl_alone() && PairOf(nccls) == PairOf(one.config);
    const auto [pair, is_new] = pairs.try_emplace(PairOf(one.config));
    if (is_new) pair->second = {of_nccl ? 0 : next++, one.config, key.Over(one)};
  }
  return pairs;
}

}  // namespace

std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model) {
  PricedKey key = PriceAll(policy, input, question);
  TakeBest(best_of_model, &Priced::by_model, key.others);
  TakeBest(kBestOfPrior, &Priced::believed, key.others);
  std::vector<ProbeCandidate> candidates;
  for (const Priced& one : key.others) {
    if (one.worth_trying || IsNeighbour(one.config, key.others[0].config))
      candidates.push_back({one.config, std::exp2(key.Over(one))});
  }
  return candidates;
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
  TakeBest(0, &Priced::believed, key.others);
  const std::map<Pair, PairPlace> pairs = PlacesOf(key, own.pair);
  const int half = key.by_default.config.channels / 2;
  std::vector<std::pair<int, ProbeCandidate>> ordered;
  for (const Priced& one : key.others) {
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

std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most) {
  const PricedKey key = PriceAll(policy, input, question);
  const std::vector<SeenConfig> seen = SeenOf(key, tried);
  std::vector<ProbeCandidate> candidates;
  for (const Priced& one : key.others) {
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

}  // namespace dynamiccl
