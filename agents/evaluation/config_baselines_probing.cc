// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/config_baselines_probing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "src/policy/config_inference.h"
#include "src/policy/probe_candidates.h"

namespace dynamiccl::agents {
namespace {

using KeyId = std::tuple<std::string, Collective, uint64_t>;
KeyId IdOf(const SweptKey& key) {
  return {key.topology, key.question.collective, key.question.bytes};
}

double MeanPick(const SweptConfig& swept) {
  double sum = 0;
  for (const float us : swept.picks) sum += us;
  return sum / static_cast<double>(swept.picks.size());
}

// Arm 0 is the default, arm i + 1 the key's config i.
class CalledKey {
 public:
  CalledKey(const SweptKey& key, uint64_t seed) : key_(key), random_(seed) {}

  size_t arms() const { return key_.configs.size() + 1; }
  CollectiveConfig Config(size_t arm) const {
    return arm == 0 ? kLeaveNcclAlone : key_.configs[arm - 1].config;
  }
  // arms() where the config was not measured forced.
  size_t ArmOf(const CollectiveConfig& config) const {
    size_t arm = 1;
    while (arm < arms() && !(Config(arm) == config)) ++arm;
    return arm;
  }
  // The arm of the config that the default is.
  size_t DefaultsTwin() const { return ArmOf(key_.default_choice->config); }
  // log2 of the microseconds that this call took. `probe`: the call tried something.
  double Call(size_t arm, bool probe) {
    const SweptConfig& swept = arm == 0 ? *key_.default_choice : key_.configs[arm - 1];
    const double us = swept.picks[random_() % swept.picks.size()];
    ++calls_;
    probes_ += probe;
    spent_ += us;
    return std::log2(us);
  }
  bool over() const { return calls_ >= kProbingCalls; }
  int calls() const { return calls_; }
  void UseUpWith(size_t arm) {
    while (!over()) Call(arm, false);
  }
  ProbeCost cost() const {
    const double usual = MeanPick(*key_.default_choice);
    const size_t oracle = ArmOf(OracleChoice(key_));
    const double best = oracle == arms() ? usual : MeanPick(key_.configs[oracle - 1]);
    return {static_cast<double>(probes_), spent_ / (usual * calls_) - 1, spent_ / (best * calls_) - 1};
  }
  const SweptKey& key() const { return key_; }

 private:
  const SweptKey& key_;
  std::mt19937_64 random_;
  int calls_ = 0;
  int probes_ = 0;
  double spent_ = 0;
};

struct Found {
  CollectiveConfig config;
  ProbeCost cost;
  std::vector<ChoiceFrom> choices;
};
using Findings = std::map<KeyId, Found>;

Chooser ChooserOf(const std::string& name, Findings findings) {
  const auto shared = std::make_shared<const Findings>(std::move(findings));
  return {name,
          [shared](const SweptKey& key) {
            const auto found = shared->find(IdOf(key));
            return found == shared->end() ? kLeaveNcclAlone : found->second.config;
          },
          [shared](const SweptKey& key) {
            const auto found = shared->find(IdOf(key));
            return found == shared->end() ? ProbeCost{} : found->second.cost;
          }};
}

// Winsorised differences of log2 times, arm against the one in use.
struct Trial {
  size_t arm = 0;
  double predicted = 0;  // log2 over the one in use
  int count = 0;
  double sum = 0, squares = 0;

  void Add(double difference) {
    const double cut = std::clamp(difference, -kWinsorised, kWinsorised);
    ++count;
    sum += cut;
    squares += cut * cut;
  }
  double mean() const { return sum / count; }
  double error() const {
    const double variance = std::max(0.0, squares / count - mean() * mean());
    return std::sqrt(variance / std::max(1, count - 1)) + kLeastError;
  }
  static constexpr double kWinsorised = 0.29;  // log2(1.22): one straggling call must not decide
  static constexpr double kLeastError = 0.001;
};

// The bounds are those of jobs (src/decision/guard/guarded_key.cc), whose test for adoption is a stricter
// one.
constexpr int kLeastPairs = 5;
constexpr int kMostPairs = 40;
constexpr int kHopelessPairs = 2, kFutilePairs = 8;
constexpr double kHopeless = 0.144, kFutile = -0.0144;  // 10 % slower, 1 % faster, log2
constexpr double kOneSided999 = 3.09;                   // adopting a worse one: one in a thousand
constexpr double kAdopt = -0.0072;                      // 0.5 % faster, log2
// Three times as slow as predicted, where at most a halving is believed, log2.
constexpr double kNeverAgain = 1.585, kMostBelieved = -1;
constexpr size_t kMostTrials = 8;
constexpr size_t kBestOfModel = 3;  // beside the policy's best

// One key's calls: every other one tries a candidate against the config in use, until none is left.
class KeySearch {
 public:
  KeySearch(CalledKey& called, size_t in_use, std::vector<Trial> trials)
      : called_(called), in_use_(in_use), trials_(std::move(trials)), choices_{{1, called.Config(in_use)}} {}

  Found Run() {
    for (size_t turn = 0; !called_.over(); ++turn) {
      const double usual = called_.Call(in_use_, false);
      if (trials_.empty() || called_.over()) continue;
      const size_t index = turn % trials_.size();
      const double difference = called_.Call(trials_[index].arm, true) - usual;
      trials_[index].Add(difference);
      if (IsBetter(trials_[index]))
        Adopt(trials_[index]);
      else if (IsHopeless(trials_[index], difference))
        trials_.erase(trials_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    return {called_.Config(in_use_), called_.cost(), choices_};
  }

 private:
  static bool IsBetter(const Trial& trial) {
    return trial.count >= kLeastPairs && trial.mean() + kOneSided999 * trial.error() < kAdopt;
  }
  static bool IsHopeless(const Trial& trial, double difference) {
    if (difference > std::max(trial.predicted, kMostBelieved) + kNeverAgain) return true;
    if (trial.count >= kHopelessPairs && trial.mean() > kHopeless) return true;
    return trial.count >= kMostPairs || (trial.count >= kFutilePairs && trial.mean() > kFutile);
  }
  // What was in use stays a candidate; differences against it say nothing of those against the new one.
  void Adopt(const Trial& winner) {
    const Trial before{in_use_, -winner.predicted};
    in_use_ = winner.arm;
    std::vector<Trial> others;
    for (const Trial& other : trials_) {
      if (other.arm != in_use_) others.push_back({other.arm, other.predicted + before.predicted});
    }
    others.push_back(before);
    trials_ = std::move(others);
    choices_.push_back({called_.calls() + 1, called_.Config(in_use_)});
  }

  CalledKey& called_;
  size_t in_use_;
  std::vector<Trial> trials_;
  std::vector<ChoiceFrom> choices_;
};

// What jobs would try: the key's candidates, and the default where it is not in use.
std::vector<Trial> TrialsOf(const Policy* policy, const CalledKey& called, size_t in_use) {
  const SweptKey& key = called.key();
  std::vector<Trial> trials;
  double of_in_use = 0;
  for (const ProbeCandidate& candidate : ProbeCandidates(policy, key.model, key.question, kBestOfModel)) {
    const size_t arm = called.ArmOf(candidate.config);
    const double predicted = std::log2(candidate.predicted);
    if (arm == in_use) of_in_use = predicted;
    const bool offered = arm < called.arms() && arm != in_use && arm != called.DefaultsTwin();
    if (offered && trials.size() < kMostTrials) trials.push_back({arm, predicted});
  }
  if (in_use != 0) trials.push_back({0, 0});
  for (Trial& trial : trials) trial.predicted -= of_in_use;
  return trials;
}

Found RunTrials(const Policy* policy, CalledKey& called, size_t in_use) {
  return KeySearch(called, in_use, TrialsOf(policy, called, in_use)).Run();
}

Found ProbeFrom(const Policy& policy, CalledKey& called, const CollectiveConfig& first) {
  const size_t arm = called.ArmOf(first);
  return RunTrials(&policy, called, first.leaves_nccl_alone() || arm == called.arms() ? 0 : arm);
}

Found ProbeFromPolicy(const Policy& policy, CalledKey& called) {
  const SweptKey& key = called.key();
  return ProbeFrom(policy, called, ChooseConfig(policy, key.model, key.question).config);
}

// Mean of three calls.
double ThreeCalls(CalledKey& called, size_t arm) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += called.Call(arm, true);
  return sum / 3;
}

Found DescendCoordinates(CalledKey& called) {
  size_t best = 0;
  double least = ThreeCalls(called, 0);
  CollectiveConfig at = called.key().default_choice->config;
  for (bool improved = true, channels = false; !called.over(); channels = !channels) {
    const size_t before = best;
    for (size_t arm = 1; arm < called.arms() && !called.over(); ++arm) {
      const CollectiveConfig config = called.Config(arm);
      const bool same_pair = config.algorithm == at.algorithm && config.protocol == at.protocol;
      const bool on_the_line = channels ? same_pair : config.channels == at.channels && !same_pair;
      if (arm == best || !on_the_line) continue;
      const double mean = ThreeCalls(called, arm);
      if (mean >= least) continue;
      least = mean;
      best = arm;
    }
    if (best != 0) at = called.Config(best);
    if (best == before && !improved) break;  // neither coordinate gave anything
    improved = best != before;
  }
  called.UseUpWith(best);
  return {called.Config(best), called.cost(), {}};
}

double TrimmedMean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = values.size() / 4;
  double sum = 0;
  for (size_t i = cut; i < values.size() - cut; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * cut);
}

Found TryAllInTurn(CalledKey& called) {
  std::vector<std::vector<double>> times(called.arms());
  const size_t rounds = std::max<size_t>(1, kProbingCalls / 2 / called.arms());
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t arm = 0; arm < called.arms() && !called.over(); ++arm)
      times[arm].push_back(called.Call(arm, arm != 0));
  }
  size_t best = 0;
  double least = TrimmedMean(times[0]) + std::log2(0.95);
  for (size_t arm = 1; arm < called.arms(); ++arm) {
    if (times[arm].empty() || TrimmedMean(times[arm]) >= least) continue;
    least = TrimmedMean(times[arm]);
    best = arm;
  }
  called.UseUpWith(best);
  return {called.Config(best), called.cost(), {}};
}

// Ridge regression with its inverse kept by rank-one updates (Sherman and Morrison).
class LinearModel {
 public:
  static constexpr size_t kSize = kConfigFeatures + 1;
  using Row = std::array<double, kSize>;

  LinearModel() {
    for (size_t i = 0; i < kSize; ++i) inverse_[i][i] = 1;
  }
  double Mean(const Row& row) const { return Dot(theta_, row); }
  double Width(const Row& row) const { return std::sqrt(std::max(0.0, Dot(row, Times(row)))); }
  void Add(const Row& row, double target) {
    const Row v = Times(row);
    const double scale = 1 / (1 + Dot(row, v));
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j < kSize; ++j) inverse_[i][j] -= v[i] * v[j] * scale;
      moments_[i] += row[i] * target;
    }
    theta_ = Times(moments_);
  }

 private:
  static double Dot(const Row& a, const Row& b) {
    double sum = 0;
    for (size_t i = 0; i < kSize; ++i) sum += a[i] * b[i];
    return sum;
  }
  Row Times(const Row& row) const {
    Row product{};
    for (size_t i = 0; i < kSize; ++i) product[i] = Dot(inverse_[i], row);
    return product;
  }
  std::array<Row, kSize> inverse_{};
  Row moments_{}, theta_{};
};

struct LinUcbKey {
  CalledKey called;
  std::vector<LinearModel::Row> rows;  // by config
  std::vector<double> priors;          // log2 microseconds
};

LinUcbKey PrepareForLinUcb(const SweptKey& key, uint64_t seed) {
  LinUcbKey prepared{CalledKey(key, seed), {}, {}};
  const ConfigContext context(key.model, key.question);
  for (const SweptConfig& swept : key.configs) {
    const ConfigAction action = context.Price(swept.config);
    LinearModel::Row row{};
    if (action.prior > 0) {
      const ConfigInputs inputs = context.Features(action);
      for (size_t i = 0; i < size_t{kConfigFeatures}; ++i) row[i] = inputs[i] / 4096.0;
    }
    row.back() = 1;
    prepared.rows.push_back(row);
    prepared.priors.push_back(action.prior > 0 ? action.prior / 65536.0 - std::log2(1e6) : 0);
  }
  return prepared;
}

size_t BestByLinUcb(const LinearModel& model, const LinUcbKey& key, double width) {
  size_t best = 0;
  double least = 1e300;
  for (size_t i = 0; i < key.rows.size(); ++i) {
    const double bound = key.priors[i] + model.Mean(key.rows[i]) - width * model.Width(key.rows[i]);
    if (bound >= least) continue;
    least = bound;
    best = i;
  }
  return best;
}

// Calls of all keys of the topology in turn, as a training step issues them.
void RunLinUcb(std::vector<LinUcbKey>& keys, Findings& findings) {
  constexpr double kWidth = 0.5;  // octaves, about what the cost model is off by
  LinearModel model;
  for (int call = 0; call < kProbingCalls; ++call) {
    for (LinUcbKey& key : keys) {
      const size_t chosen = BestByLinUcb(model, key, kWidth);
      const double log2 = key.called.Call(chosen + 1, true);
      model.Add(key.rows[chosen], log2 - key.priors[chosen]);
    }
  }
  for (LinUcbKey& key : keys) {
    const size_t best = BestByLinUcb(model, key, 0);
    findings[IdOf(key.called.key())] = {key.called.Config(best + 1), key.called.cost(), {}};
  }
}

Findings RunLinUcb(const std::vector<SweptKey>& keys, uint64_t seed) {
  std::map<std::string, std::vector<LinUcbKey>> topologies;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].default_choice)
      topologies[keys[i].topology].push_back(PrepareForLinUcb(keys[i], seed * 1000003 + i));
  }
  Findings findings;
  for (auto& [name, members] : topologies) RunLinUcb(members, findings);
  return findings;
}

template <typename Run>
Chooser RunOnAll(const std::string& name, const std::vector<SweptKey>& keys, uint64_t seed, Run run) {
  Findings findings;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].default_choice) continue;
    CalledKey called(keys[i], seed * 1000003 + i);
    findings[IdOf(keys[i])] = run(called);
  }
  return ChooserOf(name, std::move(findings));
}

}  // namespace

std::vector<ChoiceFrom> SearchedChoices(const Policy& policy, const SweptKey& key,
                                        const CollectiveConfig& first, uint64_t seed) {
  CalledKey called(key, seed);
  return ProbeFrom(policy, called, first).choices;
}

std::vector<Chooser> ProbingChoosers(const Policy& policy, const std::vector<SweptKey>& keys, uint64_t seed) {
  return {RunOnAll("policy, probes", keys, seed,
                   [&](CalledKey& called) { return ProbeFromPolicy(policy, called); }),
          RunOnAll("cost model, probes", keys, seed,
                   [](CalledKey& called) { return RunTrials(nullptr, called, 0); }),
          RunOnAll("coordinate descent", keys, seed, DescendCoordinates),
          RunOnAll("bandit, 5 % gate", keys, seed, TryAllInTurn), ChooserOf("LinUCB", RunLinUcb(keys, seed))};
}

}  // namespace dynamiccl::agents
