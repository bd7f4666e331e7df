// SPDX-License-Identifier: Apache-2.0
// Runs each search on every key, and records its result and its cost. LinUCB is the algorithm of Li et al.,
// WWW 2010, with costs instead of rewards.
#include "studies/agents/baselines/config_baselines_probing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "src/policy/config_inference.h"
#include "studies/agents/baselines/called_key.h"

namespace dynamiccl::agents {
namespace {

// Number of steps in the window whose worst excess is reported.
constexpr std::ptrdiff_t kWindowSteps = 20;

// Identifies the same key in different copies.
using KeyId = std::tuple<std::string, Collective, uint64_t>;
KeyId IdOf(const SweptKey& key) {
  return {key.topology, key.question.collective, key.question.bytes};
}

// The result of a search at one key.
struct Found {
  CollectiveConfig config;
  ProbeCost cost;
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

// The mean log2 time of three calls that try the arm.
double ThreeCalls(CalledKey& called, size_t arm) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += called.Call(arm, true);
  return sum / 3;
}

// Alternates between two searches: algorithm and protocol at the present number of channels, and the number
// of channels at the present algorithm and protocol.
CollectiveConfig DescendCoordinates(CalledKey& called) {
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
    if (best == before && !improved) break;  // neither coordinate improved anything
    improved = best != before;
  }
  called.UseUpWith(best);
  return called.Config(best);
}

// The mean of the middle half of the values.
double TrimmedMean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t cut = values.size() / 4;
  double sum = 0;
  for (size_t i = cut; i < values.size() - cut; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * cut);
}

// Spends half of the calls on all arms in turn. All other calls use the best arm.
CollectiveConfig TryAllInTurn(CalledKey& called) {
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
  return called.Config(best);
}

// Ridge regression whose inverse is kept by rank-one updates (Sherman and Morrison 1950).
class LinearModel {
 public:
  // Number of features, with one more for a constant.
  static constexpr size_t kSize = kConfigFeatures + 1;
  using Row = std::array<double, kSize>;

  LinearModel() {
    for (size_t i = 0; i < kSize; ++i) inverse_[i][i] = 1;
  }
  double Mean(const Row& row) const { return Dot(theta_, row); }
  // The standard error of the prediction, in units of the noise's standard deviation.
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

// A key with its features, as LinUCB needs it.
struct LinUcbKey {
  CalledKey& called;
  // The features of each configuration.
  std::vector<LinearModel::Row> rows;
  // The cost model's log2 microseconds of each configuration; 0 if it has no price.
  std::vector<double> priors;
};

LinUcbKey PrepareForLinUcb(CalledKey& called) {
  const SweptKey& key = called.key();
  LinUcbKey prepared{called, {}, {}};
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

// Calls all keys of the topology in turn, as a training step issues them.
void RunLinUcb(std::vector<LinUcbKey>& keys, Findings& findings) {
  // How much LinUCB explores, in octaves: about the error of the cost model.
  constexpr double kWidth = 0.5;
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
    findings[IdOf(key.called.key())] = {key.called.Config(best + 1), key.called.cost()};
  }
}

// Returns the largest share by which a window of steps exceeds the default's mean. A step calls all keys of a
// topology once.
double WorstWindow(const std::vector<const CalledKey*>& keys) {
  std::vector<double> steps(kProbingCalls);
  double usual = 0;
  for (const CalledKey* key : keys) {
    for (size_t step = 0; step < steps.size() && step < key->microseconds().size(); ++step)
      steps[step] += key->microseconds()[step];
    usual += key->usual_microseconds();
  }
  double worst = -1;
  for (auto first = steps.begin(); steps.end() - first >= kWindowSteps; ++first)
    worst = std::max(worst, std::accumulate(first, first + kWindowSteps, 0.0) / (kWindowSteps * usual) - 1);
  return worst;
}

void NoteWorstWindows(const std::vector<CalledKey>& called, Findings& findings) {
  std::map<std::string, std::vector<const CalledKey*>> topologies;
  for (const CalledKey& key : called) topologies[key.key().topology].push_back(&key);
  for (const auto& [name, members] : topologies) {
    const double worst = WorstWindow(members);
    for (const CalledKey* key : members) findings[IdOf(key->key())].cost.worst_window = worst;
  }
}

// The keys that can be called: those with a measured default.
std::vector<CalledKey> CallableKeys(const std::vector<SweptKey>& keys, uint64_t seed) {
  std::vector<CalledKey> called;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].default_choice) called.emplace_back(keys[i], seed * 1000003 + i);
  }
  return called;
}

Findings RunLinUcb(const std::vector<SweptKey>& keys, uint64_t seed) {
  std::vector<CalledKey> called = CallableKeys(keys, seed);
  std::map<std::string, std::vector<LinUcbKey>> topologies;
  for (CalledKey& key : called) topologies[key.key().topology].push_back(PrepareForLinUcb(key));
  Findings findings;
  for (auto& [name, members] : topologies) RunLinUcb(members, findings);
  NoteWorstWindows(called, findings);
  return findings;
}

// `run` uses up a key's calls and returns the configuration in use at the end.
template <typename Run>
Chooser RunOnAll(const std::string& name, const std::vector<SweptKey>& keys, uint64_t seed, Run run) {
  Findings findings;
  std::vector<CalledKey> called = CallableKeys(keys, seed);
  for (CalledKey& key : called) {
    const CollectiveConfig config = run(key);
    findings[IdOf(key.key())] = {config, key.cost()};
  }
  NoteWorstWindows(called, findings);
  return ChooserOf(name, std::move(findings));
}

}  // namespace

std::vector<ChoiceFrom> SearchedChoices(const Policy& policy, const SweptKey& key,
                                        const CollectiveConfig& first, uint64_t seed) {
  CalledKey called(key, seed);
  return SearchKey(&policy, called, first);
}

std::vector<Chooser> ProbingChoosers(const Policy& policy, const std::vector<SweptKey>& keys, uint64_t seed) {
  const auto by_policy = [&](CalledKey& called) {
    const SweptKey& key = called.key();
    return SearchKey(&policy, called, ChooseConfig(policy, key.model, key.question).config).back().config;
  };
  const auto by_model = [](CalledKey& called) {
    return SearchKey(nullptr, called, kLeaveNcclAlone).back().config;
  };
  const auto by_default = [](CalledKey& called) {
    called.UseUpWith(0);
    return kLeaveNcclAlone;
  };
  return {RunOnAll("default, called", keys, seed, by_default),
          RunOnAll("policy, probes", keys, seed, by_policy),
          RunOnAll("cost model, probes", keys, seed, by_model),
          RunOnAll("coordinate descent", keys, seed, DescendCoordinates),
          RunOnAll("bandit, 5 % gate", keys, seed, TryAllInTurn),
          ChooserOf("LinUCB", RunLinUcb(keys, seed))};
}

}  // namespace dynamiccl::agents
