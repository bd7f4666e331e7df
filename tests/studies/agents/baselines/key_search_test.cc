// SPDX-License-Identifier: Apache-2.0
// Tests the search of one key on sweeps whose times are known. It must end when it should, try only measured
// configs, and stay within the bound for trials.
#include "studies/agents/baselines/key_search.h"
#include "studies/agents/baselines/probe_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace dynamiccl::agents {
namespace {

using TimeOf = std::function<double(const CollectiveConfig&)>;

// Returns a key with all configs of AllReduce with 1, 4 and 8 channels on two nodes. NCCL's own choice takes
// 100 us.
SweptKey KeyWith(const TimeOf& microseconds) {
  SweptKey key;
  key.topology = "t";
  key.model.fabric = {16, 2, 8, {1, 8}, {10, 2}};
  key.model.constants = NcclHopperConstants(2);
  key.question = {Collective::kAllReduce, 1 << 20, {}};
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      key.question.allowed.set(ConfigIndex(algorithm, protocol));
      for (const uint8_t channels : {1, 4, 8}) {
        const CollectiveConfig config{algorithm, protocol, channels};
        const double us = microseconds(config);
        key.configs.push_back({config, {us, us}, {static_cast<float>(us)}, {static_cast<float>(us)}});
      }
    }
  }
  const CollectiveConfig usual = ConfigContext(key.model, key.question).default_config();
  key.default_choice = SweptConfig{usual, {100, 100}, {100}, {100}};
  return key;
}

CollectiveConfig Usual() {
  return KeyWith([](const CollectiveConfig&) { return 100; }).default_choice->config;
}

// Returns a config that is not among the first candidates. One of the candidates has its algorithm and
// protocol.
CollectiveConfig KinOfACandidate(const SweptKey& key) {
  const auto candidates = FirstCandidates(nullptr, key.model, key.question, 3);
  for (const SweptConfig& swept : key.configs) {
    bool kin = false, itself = swept.config == Usual();
    for (const ProbeCandidate& candidate : candidates) {
      itself |= candidate.config == swept.config;
      kin |= candidate.config.algorithm == swept.config.algorithm &&
             candidate.config.protocol == swept.config.protocol;
    }
    if (kin && !itself) return swept.config;
  }
  return kLeaveNcclAlone;
}

TEST(KeySearch, FindsWhatNobodyPredictedByItsKin) {
  const CollectiveConfig best = KinOfACandidate(KeyWith([](const CollectiveConfig&) { return 100; }));
  ASSERT_NE(best, kLeaveNcclAlone);
  const SweptKey key = KeyWith([&](const CollectiveConfig& config) {
    if (config == best || config == Usual()) return config == best ? 60.0 : 100.0;
    return config.algorithm == best.algorithm && config.protocol == best.protocol ? 90.0 : 130.0;
  });
  CalledKey called(key, 1);
  const auto choices = SearchKey(nullptr, called, kLeaveNcclAlone);
  EXPECT_EQ(choices.front().call, 1);
  EXPECT_EQ(choices.front().config, kLeaveNcclAlone);
  EXPECT_EQ(choices.back().config, best);
  EXPECT_EQ(called.calls(), kProbingCalls);
}

TEST(KeySearch, WhereAllElseIsRuinousNoWindowPassesItsBoundByMoreThanOneTrial) {
  const SweptKey key =
      KeyWith([](const CollectiveConfig& config) { return config == Usual() ? 100.0 : 500.0; });
  CalledKey called(key, 1);
  EXPECT_EQ(SearchKey(nullptr, called, kLeaveNcclAlone).size(), 1u) << "nothing is adopted";
  const std::vector<float>& us = called.microseconds();
  int trials = 0;
  for (const float one : us) trials += one > 100;
  EXPECT_GE(trials, 2);
  constexpr std::ptrdiff_t kWindow = 20;
  for (auto first = us.begin(); us.end() - first >= kWindow; ++first) {
    const double over = std::accumulate(first, first + kWindow, 0.0) / 100 - kWindow;
    EXPECT_LE(over, 0.1 * kWindow + 4) << "a tenth of the window, and one trial of five times the time";
  }
}

TEST(KeySearch, ABadFirstChoiceIsLeft) {
  const CollectiveConfig bad{Algorithm::kRing, Protocol::kLL, 1};
  const SweptKey key = KeyWith([&](const CollectiveConfig& config) { return config == bad ? 180.0 : 100.0; });
  CalledKey called(key, 1);
  const auto choices = SearchKey(nullptr, called, bad);
  EXPECT_EQ(choices.front().config, bad);
  EXPECT_NE(choices.back().config, bad);
}

TEST(CalledKey, CountsWhatItsCallsCost) {
  const SweptKey key =
      KeyWith([](const CollectiveConfig& config) { return config.channels == 8 ? 50.0 : 100.0; });
  CalledKey called(key, 1);
  const size_t best = called.ArmOf({Algorithm::kRing, Protocol::kLL, 8});
  EXPECT_EQ(called.Call(best, true), std::log2(50.0));
  EXPECT_EQ(called.ArmOf({Algorithm::kRing, Protocol::kLL, 3}), called.arms()) << "was not measured";
  called.UseUpWith(0);
  EXPECT_TRUE(called.over());
  const ProbeCost cost = called.cost();
  EXPECT_EQ(cost.probes, 1);
  EXPECT_NEAR(cost.over_default, -0.5 / kProbingCalls, 1e-9);
  EXPECT_NEAR(cost.over_oracle, 1 - 1.0 / kProbingCalls, 1e-9);
}

}  // namespace
}  // namespace dynamiccl::agents
