// SPDX-License-Identifier: Apache-2.0
// Outcomes of all keys, choosers and seeds, and their summaries. The bootstrap draws whole topologies,
// because keys of one topology are not independent.
#include "agents/evaluation/regret.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "src/base/statistics.h"

namespace dynamiccl::agents {
namespace {

// A choice that is slower than the default by more than this share counts as worse. Repeats of one cell
// differ by up to 5 %.
constexpr double kWorse = 0.05;
// A choice with at least this regret counts as a cliff: it takes at least 1.3 times the oracle's time.
constexpr double kCliff = 0.3;
// Confidence with which the intervals of all keys hold at once.
constexpr double kSimultaneous = 0.99;
// A gain counts as clear when it is at least this many times the noise.
constexpr double kClear = 3;
// Number of draws of the bootstrap, and the fixed seed of its random numbers.
constexpr int kDraws = 1000;
constexpr uint64_t kDrawSeed = 20;

// The outcome of one key for one chooser and one seed; times in microseconds.
struct KeyOutcome {
  // Time of the choice. `best` is the time of the oracle's choice, `standard` that of the default.
  double chosen = 0;
  double best = 0;
  double standard = 0;
  bool changed = false;
  bool surely_worse = false;
  // Noise of the key, in natural logarithms of time.
  double noise = 0;
  ProbeCost cost;
  size_t seed = 0;
  // Number of the key's topology. The bootstrap draws topologies as blocks.
  size_t block = 0;

  double regret() const { return chosen / best - 1; }
  double over_default() const { return chosen / standard; }
  // Gains over the default as natural logarithms: first that of the oracle, then that of the choice.
  double gain() const { return std::log(standard / best); }
  double gain_of_chosen() const { return std::log(standard / chosen); }
  bool is_clear() const { return gain() >= kClear * noise && gain() > 0; }
};

// Variance of the log of one repeat, pooled over all configurations of the key.
double RepeatVariance(const SweptKey& key) {
  double squares = 0, freedom = 0;
  for (const SweptConfig& swept : key.configs) {
    if (swept.values.size() < 2) continue;
    const double mean = MeanLog(swept.values);
    for (const float us : swept.values) squares += (std::log(us) - mean) * (std::log(us) - mean);
    freedom += static_cast<double>(swept.values.size()) - 1;
  }
  return freedom > 0 ? squares / freedom : HUGE_VAL;
}

// The half-width, in standard deviations, with which the intervals of `keys` keys all hold at once
// (Bonferroni).
double WidthFor(size_t keys) {
  const double outside = (1 - kSimultaneous) / 2 / static_cast<double>(keys);
  double low = 0, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > outside ? low : high) = middle;
  }
  return high;
}

// The difference between the two halves of a configuration's repeats, as a natural logarithm, estimated over
// the key's configurations.
double NoiseOf(const SweptKey& key) {
  std::vector<double> apart;
  for (const SweptConfig& swept : key.configs)
    apart.push_back(std::abs(std::log(swept.time.pick / swept.time.value)));
  return kSigmasOfMedianDeviation * MedianInPlace(apart);
}

const SweptConfig& MeasuredAs(const SweptKey& key, const CollectiveConfig& config) {
  if (!(config == key.default_choice->config)) {
    for (const SweptConfig& swept : key.configs) {
      if (swept.config == config) return swept;
    }
  }
  return *key.default_choice;
}

bool IsSurelyWorse(const SweptKey& key, const CollectiveConfig& config, double width) {
  const std::vector<float>&chosen = MeasuredAs(key, config).values, &usual = key.default_choice->values;
  if (chosen.empty() || usual.empty()) return false;
  const double inverse = 1 / static_cast<double>(chosen.size()) + 1 / static_cast<double>(usual.size());
  const double error = std::sqrt(RepeatVariance(key) * inverse);
  return MeanLog(chosen) - MeanLog(usual) - width * error > std::log(1 + kWorse);
}

KeyOutcome OutcomeOf(const SweptKey& key, const Chooser& chooser, double width) {
  const CollectiveConfig config = chooser.choose(key);
  KeyOutcome outcome;
  outcome.chosen = ValueOf(key, config);
  outcome.best = ValueOf(key, OracleChoice(key));
  outcome.standard = key.default_choice->time.value;
  outcome.changed = !config.leaves_nccl_alone() && !(config == key.default_choice->config);
  outcome.surely_worse = outcome.over_default() > 1 + kWorse && IsSurelyWorse(key, config, width);
  outcome.noise = NoiseOf(key);
  if (chooser.cost) outcome.cost = chooser.cost(key);
  return outcome;
}

// Sums over the keys of one topology (block) and one seed. A draw of the bootstrap needs only these sums.
struct Sums {
  double keys = 0, regret = 0, chosen = 0, best = 0;
};

void AddIntervals(const std::vector<KeyOutcome>& outcomes, size_t blocks, RegretSummary& summary) {
  std::vector<std::vector<Sums>> sums(summary.seeds, std::vector<Sums>(blocks));
  for (const KeyOutcome& outcome : outcomes) {
    Sums& sum = sums[outcome.seed][outcome.block];
    ++sum.keys;
    sum.regret += outcome.regret();
    sum.chosen += outcome.chosen;
    sum.best += outcome.best;
  }
  std::mt19937_64 random(kDrawSeed);
  std::vector<double> means, times;
  for (int draw = 0; draw < kDraws; ++draw) {
    Sums all;
    for (size_t s = 0; s < summary.seeds; ++s) {
      const std::vector<Sums>& seed = sums[random() % summary.seeds];
      for (size_t b = 0; b < blocks; ++b) {
        const Sums& one = seed[random() % blocks];
        all.keys += one.keys;
        all.regret += one.regret;
        all.chosen += one.chosen;
        all.best += one.best;
      }
    }
    means.push_back(all.keys > 0 ? all.regret / all.keys : 0);
    times.push_back(all.best > 0 ? all.chosen / all.best - 1 : 0);
  }
  summary.mean_interval = BootstrapInterval(std::move(means));
  summary.time_interval = BootstrapInterval(std::move(times));
}

void AddClearKeys(const std::vector<KeyOutcome>& outcomes, RegretSummary& summary) {
  double gain = 0, kept = 0;
  const auto seeds = static_cast<double>(summary.seeds);
  for (const KeyOutcome& outcome : outcomes) {
    if (outcome.is_clear()) {
      gain += outcome.gain();
      kept += outcome.gain_of_chosen();
      summary.clear_keys += outcome.seed == 0;
    } else {
      summary.other_keys += outcome.seed == 0;
      summary.others_slower += (-outcome.gain_of_chosen() > kClear * outcome.noise) / seeds;
    }
  }
  summary.clear_gain_kept = gain > 0 ? kept / gain : 0;
}

// Adds the largest and the median of ProbeCost::worst_window over all pairs of topology and seed.
void AddWindows(const std::vector<KeyOutcome>& outcomes, RegretSummary& summary) {
  std::map<std::pair<size_t, size_t>, double> windows;
  for (const KeyOutcome& outcome : outcomes)
    windows[{outcome.seed, outcome.block}] = outcome.cost.worst_window;
  std::vector<double> worsts;
  for (const auto& [topology, worst] : windows) worsts.push_back(worst);
  summary.cost.worst_window = *std::max_element(worsts.begin(), worsts.end());
  summary.median_window = MedianInPlace(worsts);
}

RegretSummary Summarise(const std::vector<KeyOutcome>& outcomes, size_t seeds, size_t blocks) {
  RegretSummary summary;
  summary.seeds = seeds;
  summary.keys = outcomes.size() / seeds;
  const auto count = static_cast<double>(outcomes.size());
  std::vector<double> regrets;
  double log_speed_up = 0, chosen = 0, best = 0;
  for (const KeyOutcome& outcome : outcomes) {
    regrets.push_back(outcome.regret());
    chosen += outcome.chosen;
    best += outcome.best;
    summary.cost.probes += outcome.cost.probes / count;
    summary.cost.over_default += outcome.cost.over_default / count;
    summary.cost.over_oracle += outcome.cost.over_oracle / count;
    summary.mean_regret += outcome.regret() / count;
    log_speed_up -= std::log(outcome.over_default()) / count;
    summary.share_changed += outcome.changed / count;
    summary.share_worse += (outcome.over_default() > 1 + kWorse) / count;
    summary.share_cliffs += (outcome.regret() >= kCliff) / count;
    summary.surely_worse += outcome.surely_worse / static_cast<double>(seeds);
    summary.worst_slowdown = std::max(summary.worst_slowdown, outcome.over_default() - 1);
  }
  summary.p95_regret = QuantileInPlace(regrets, 0.95);
  summary.worst_regret = *std::max_element(regrets.begin(), regrets.end());
  summary.speed_up = std::exp(log_speed_up);
  summary.time_regret = chosen / best - 1;
  AddClearKeys(outcomes, summary);
  AddWindows(outcomes, summary);
  AddIntervals(outcomes, blocks, summary);
  return summary;
}

// Groups choosers by name, in the order of first appearance.
std::vector<std::vector<const Chooser*>> ByName(const std::vector<Chooser>& choosers) {
  std::vector<std::vector<const Chooser*>> groups;
  for (const Chooser& chooser : choosers) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& g) { return g.front()->name == chooser.name; });
    if (same == groups.end())
      groups.push_back({&chooser});
    else
      same->push_back(&chooser);
  }
  return groups;
}

}  // namespace

double ValueOf(const SweptKey& key, const CollectiveConfig& config) {
  return MeasuredAs(key, config).time.value;
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

std::vector<RegretSummary> JudgeChoosers(const SplitFunction& split_of, const std::vector<SweptKey>& keys,
                                         const std::vector<Chooser>& choosers) {
  std::vector<RegretSummary> summaries;
  for (int split = 0; split < kSplits; ++split) {
    std::map<std::string, size_t> blocks;
    std::vector<const SweptKey*> members;
    for (const SweptKey& key : keys) {
      if (!key.default_choice || split_of(key) != static_cast<Split>(split)) continue;
      blocks.emplace(key.topology, blocks.size());
      members.push_back(&key);
    }
    if (members.empty()) continue;
    const double width = WidthFor(members.size());
    for (const std::vector<const Chooser*>& same : ByName(choosers)) {
      std::vector<KeyOutcome> outcomes;
      for (size_t seed = 0; seed < same.size(); ++seed) {
        for (const SweptKey* key : members) {
          outcomes.push_back(OutcomeOf(*key, *same[seed], width));
          outcomes.back().seed = seed;
          outcomes.back().block = blocks.at(key->topology);
        }
      }
      summaries.push_back(Summarise(outcomes, same.size(), blocks.size()));
      summaries.back().chooser = same.front()->name;
      summaries.back().split = static_cast<Split>(split);
      summaries.back().probes_itself = static_cast<bool>(same.front()->cost);
    }
  }
  return summaries;
}

}  // namespace dynamiccl::agents
