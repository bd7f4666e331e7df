// SPDX-License-Identifier: Apache-2.0
#include "src/decision/decision_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <random>
#include <thread>

namespace dynamiccl {
namespace {

CostTable TableOf(float tree_ll, float ring_ll, float ring_simple) {
  CostTable table;
  for (auto& row : table.microseconds) row.fill(-1.0f);
  table.microseconds[0][0] = tree_ll;
  table.microseconds[1][0] = ring_ll;
  table.microseconds[1][2] = ring_simple;
  return table;
}

std::shared_ptr<const OverrideRules> Rules(const char* text) {
  return std::make_shared<OverrideRules>(OverrideRules::Parse(text, "r").value());
}

constexpr CollectiveConfig kRingSimple4{Algorithm::kRing, Protocol::kSimple, 4};

DecisionEngine EngineWith(EntryFunction policy, const char* rules = nullptr, int max_channels = 8) {
  EngineOptions options;
  options.n_ranks = 4;
  options.max_channels = max_channels;
  options.policy = std::move(policy);
  if (rules != nullptr) options.rules = Rules(rules);
  return DecisionEngine(std::move(options));
}

TEST(ChoosableCells, AreThoseNotRuledOutAndNotPricedOut) {
  EXPECT_EQ(ChoosableCells(TableOf(10, -1, 20)).count(), 2u);
  EXPECT_EQ(ChoosableCells(TableOf(10, 4999, 5000)).count(), 2u);
  EXPECT_EQ(ChoosableCells(TableOf(10, 1.7e38f, INFINITY)).count(), 1u);
  EXPECT_EQ(ChoosableCells(TableOf(NAN, -1, -1)).count(), 0u);
  EXPECT_EQ(ChoosableCells(TableOf(0, 0, 5)).count(), 2u);
}

TEST(CheapestCell, IsThePairThatNcclUsesByItself) {
  EXPECT_EQ(CheapestCell(TableOf(10, -1, 4)), (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 0}));
  EXPECT_EQ(CheapestCell(TableOf(10, 3, NAN)), (CollectiveConfig{Algorithm::kRing, Protocol::kLL, 0}));
  EXPECT_TRUE(CheapestCell(TableOf(-1, -1, NAN)).leaves_nccl_alone());
}

// Returns the cells that may be chosen, found cell by cell.
ConfigMask PlainChoosableCells(const CostTable& table) {
  float best = INFINITY;
  for (const auto& row : table.microseconds) {
    for (const float cost : row) best = cost >= 0 && cost < best ? cost : best;
  }
  ConfigMask cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    const float cost = table.microseconds[i / kProtocols][i % kProtocols];
    cells[i] = cost >= 0 && (cost == best || cost < kPricedOut * best);
  }
  return cells;
}

TEST(ChoosableCells, AreThoseFoundCellByCell) {
  constexpr float kSpecial[] = {-1, 0, -0.0f, 1, 500, 499.99f, 5e8f, 1e-38f, 3e38f, INFINITY, -INFINITY, NAN};
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    std::mt19937_64 random(seed);
    CostTable table;
    for (auto& row : table.microseconds) {
      for (float& cost : row)
        cost = random() % 3 == 0 ? static_cast<float>(random() % 10'000)
                                 : kSpecial[random() % std::size(kSpecial)];
    }
    ASSERT_EQ(ChoosableCells(table), PlainChoosableCells(table)) << "seed " << seed;
  }
}

TEST(DecisionEngine, WithoutPolicyAndRulesLeavesNcclAlone) {
  DecisionEngine engine{EngineOptions{}};
  const Decision decision =
      engine.Decide({Collective::kAllReduce, 1024, 1, Role::kUnknown}, ChoosableCells(TableOf(1, 2, 3)));
  EXPECT_TRUE(decision.config.leaves_nccl_alone());
  EXPECT_EQ(decision.decided_by, DecidedBy::kNccl);
}

TEST(DecisionEngine, RulesWinOverThePolicy) {
  auto engine = EngineWith([](const TableKey&, const ConfigMask&) { return kRingSimple4; },
                           "allreduce,0,1024,tree,ll,2,-1,-1");
  Decision decision =
      engine.Decide({Collective::kAllReduce, 1024, 1, Role::kUnknown}, ChoosableCells(TableOf(1, 2, 3)));
  EXPECT_EQ(decision.config, (CollectiveConfig{Algorithm::kTree, Protocol::kLL, 2}));
  EXPECT_EQ(decision.decided_by, DecidedBy::kRule);
  decision =
      engine.Decide({Collective::kAllReduce, 1025, 1, Role::kUnknown}, ChoosableCells(TableOf(1, 2, 3)));
  EXPECT_EQ(decision.config, kRingSimple4);
  EXPECT_EQ(decision.decided_by, DecidedBy::kPolicy);
}

TEST(DecisionEngine, NeverChoosesWhatNcclRuledOutOrPricedOut) {
  auto engine = EngineWith([](const TableKey&, const ConfigMask&) { return kRingSimple4; },
                           "broadcast,0,1024,ring,simple,2,-1,-1");
  for (const float cost : {-1.0f, 600.0f, NAN}) {
    const ConfigMask table = ChoosableCells(TableOf(1, 2, cost));
    EXPECT_TRUE(
        engine.Decide({Collective::kAllReduce, 8, 1, Role::kUnknown}, table).config.leaves_nccl_alone());
    EXPECT_TRUE(
        engine.Decide({Collective::kBroadcast, 8, 1, Role::kUnknown}, table).config.leaves_nccl_alone());
  }
}

TEST(DecisionEngine, WhatIsAskedBeforeRanksAgreeLeavesNoEntry) {
  auto engine = EngineWith([](const TableKey&, const ConfigMask& allowed) {
    return allowed.any() ? kRingSimple4 : kLeaveNcclAlone;
  });
  const DecisionKey key{Collective::kAllReduce, 8, 1, Role::kUnknown};
  EXPECT_TRUE(engine.Decide(key, ConfigMask()).config.leaves_nccl_alone());
  EXPECT_EQ(engine.Decide(key, ChoosableCells(TableOf(1, 2, 3))).config, kRingSimple4);
}

TEST(DecisionEngine, ChannelsStayWithinTheCommunicators) {
  const auto many = [](const TableKey&, const ConfigMask&) {
    return CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 255};
  };
  const DecisionKey key{Collective::kAllReduce, 8, 1, Role::kUnknown};
  EXPECT_EQ(EngineWith(many, nullptr, 8).Decide(key, ChoosableCells(TableOf(1, 2, 3))).config.channels, 8);
  EXPECT_EQ(EngineWith(many, nullptr, 0).Decide(key, ChoosableCells(TableOf(1, 2, 3))).config.channels, 64);
}

TEST(DecisionEngine, PinnedChannelsAreNccls) {
  EngineOptions options;
  options.channels_are_pinned = true;
  options.policy = [](const TableKey&, const ConfigMask&) { return kRingSimple4; };
  DecisionEngine engine(std::move(options));
  const Decision decision =
      engine.Decide({Collective::kAllReduce, 8, 1, Role::kUnknown}, ChoosableCells(TableOf(1, 2, 3)));
  EXPECT_EQ(decision.config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 0}));
}

// A stand-in for a policy, whose answer depends on all its inputs.
CollectiveConfig Mixed(const TableKey& key, const ConfigMask& allowed) {
  const auto configs = EnumerateConfigs(allowed, 8);
  const size_t mix = static_cast<size_t>(key.size_class.index) * 31 + static_cast<size_t>(key.role) * 7 +
                     static_cast<size_t>(key.collective);
  return configs.empty() ? kLeaveNcclAlone : configs[mix % configs.size()];
}

// Tests the first law of docs/architecture.md. Each rank has an engine of its own.
TEST(DecisionEngine, EnginesOfEqualOptionsDecideEqualKeysAlike) {
  constexpr size_t kRanks = 8;
  std::vector<std::unique_ptr<DecisionEngine>> ranks;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EngineOptions options;
    options.n_ranks = kRanks;
    options.max_channels = 8;
    options.policy = Mixed;
    ranks.push_back(std::make_unique<DecisionEngine>(std::move(options)));
  }
  const ConfigMask allowed = NcclConfigs(Collective::kAllReduce);
  for (uint64_t call = 0; call < 1000; ++call) {
    const DecisionKey key{Collective::kAllReduce, uint64_t{256} << call % 20, 1,
                          static_cast<Role>(call % kRoles), call};
    const CollectiveConfig expected = ranks[0]->Decide(key, allowed).config;
    EXPECT_FALSE(expected.leaves_nccl_alone());
    for (const auto& rank : ranks) ASSERT_EQ(rank->Decide(key, allowed).config, expected) << "call " << call;
  }
}

TEST(DecisionTable, IsAPureFunctionOfTheKeyWhateverTheOrderOfQuestions) {
  const ConfigMask allowed = NcclConfigs(Collective::kAllReduce);
  DecisionTable forward(Mixed);
  DecisionTable shuffled(Mixed);
  std::vector<TableKey> keys;
  for (int c = 0; c < kTunableCollectives; ++c) {
    for (int s = 0; s < kSizeClasses; ++s) {
      for (int r = 0; r < kRoles; ++r) {
        keys.push_back(
            {static_cast<Collective>(c), SizeClass{static_cast<uint8_t>(s)}, static_cast<Role>(r)});
      }
    }
  }
  std::vector<CollectiveConfig> expected;
  for (const TableKey& key : keys) expected.push_back(forward.Lookup(key, allowed));
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  for (const size_t i : order) EXPECT_EQ(shuffled.Lookup(keys[i], allowed), expected[i]);
  EXPECT_EQ(shuffled.computed(), keys.size());
}

TEST(DecisionTable, ComputesAnEntryOnceAndKeepsIt) {
  std::atomic<int> computed{0};
  DecisionTable table([&](const TableKey&, const ConfigMask& allowed) {
    ++computed;
    return allowed.any() ? kRingSimple4 : kLeaveNcclAlone;
  });
  const TableKey key{Collective::kReduce, SizeClassOf(4096), Role::kScalar};
  EXPECT_EQ(table.Lookup(key, ConfigMask().set()), kRingSimple4);
  EXPECT_EQ(table.Lookup(key, ConfigMask()), kRingSimple4);
  EXPECT_EQ(computed, 1);
  const TableKey other{Collective::kReduce, SizeClassOf(8192), Role::kScalar};
  EXPECT_TRUE(table.Lookup(other, ConfigMask()).leaves_nccl_alone());
  EXPECT_TRUE(table.Lookup(other, ConfigMask().set()).leaves_nccl_alone());
}

// One rank alone may simulate a group (ncclGroupSimulateEnd). For the calls that follow, NCCL may offer less
// than for that group, for example because of another data type.
TEST(DecisionEngine, WhatOneRankSimulatesChangesNoChoice) {
  const auto best_offered = [](const TableKey&, const ConfigMask& allowed) {
    constexpr CollectiveConfig kRingLl{Algorithm::kRing, Protocol::kLL, 4};
    return allowed[ConfigIndex(Algorithm::kRing, Protocol::kSimple)] ? kRingSimple4 : kRingLl;
  };
  DecisionEngine simulating = EngineWith(best_offered), other = EngineWith(best_offered);
  DecisionKey key{Collective::kAllReduce, 4096};
  key.is_call = false;
  EXPECT_EQ(simulating.Decide(key, ConfigMask().set()).config, kRingSimple4);
  key.is_call = true;
  ConfigMask less;
  less.set(ConfigIndex(Algorithm::kRing, Protocol::kLL));
  const CollectiveConfig chosen = other.Decide(key, less).config;
  EXPECT_FALSE(chosen.leaves_nccl_alone());
  EXPECT_EQ(simulating.Decide(key, less).config, chosen);
  key.is_call = false;
  EXPECT_EQ(simulating.Decide(key, ConfigMask().set()).config, chosen) << "the entry that the call made";
}

TEST(DecisionTable, ThreadsThatAskAtOnceSeeOneAnswer) {
  DecisionTable table(Mixed);
  const ConfigMask allowed = NcclConfigs(Collective::kAllReduce);
  std::vector<std::vector<CollectiveConfig>> seen(4, std::vector<CollectiveConfig>(kSizeClasses));
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      for (int s = 0; s < kSizeClasses; ++s) {
        mine[s] = table.Lookup({Collective::kAllReduce, SizeClass{static_cast<uint8_t>(s)}, Role::kUnknown},
                               allowed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
}

// The plan of the version lists one key: its choice, and for some steps an arm or NCCL's choice. Rules win
// over the plan.
TEST(DecisionEngine, APlanOfTheVersionSaysWhatAKeysCallsUse) {
  constexpr CollectiveConfig kTreeLl{Algorithm::kTree, Protocol::kLL, 2};
  const TableKey key{Collective::kAllReduce, SizeClassOf(4096), Role::kUnknown};
  TablePlan plan;
  plan.step_calls = 1;
  plan.keys.push_back({key, kRingSimple4, {kTreeLl, kLeaveNcclAlone}, 3});
  EngineOptions options;
  options.max_channels = 8;
  options.policy = [=](const TableKey&, const ConfigMask&) { return kTreeLl; };
  options.rules = Rules("allreduce,0,1024,tree,ll,1,-1,-1");
  options.plan = std::make_shared<PlannedTable>(plan);
  DecisionEngine engine(options);
  const ConfigMask allowed = ChoosableCells(TableOf(1, 2, 3));
  std::array<int, 3> uses{};
  for (uint64_t call = 0; call < 200; ++call) {
    // A group that is only simulated sees the choice and counts nothing.
    EXPECT_EQ(engine.Decide({Collective::kAllReduce, 4096, 1, Role::kUnknown, call, false}, allowed).config,
              kRingSimple4);
    const Decision decision = engine.Decide({Collective::kAllReduce, 4096, 1, Role::kUnknown, call}, allowed);
    const bool left = decision.config.leaves_nccl_alone();
    ++uses[static_cast<size_t>(decision.use)];
    EXPECT_EQ(left, decision.use == CallUse::kDefaultSample);
    EXPECT_EQ(decision.config, left                              ? kLeaveNcclAlone
                               : decision.use == CallUse::kTrial ? kTreeLl
                                                                 : kRingSimple4);
  }
  EXPECT_GT(uses[static_cast<size_t>(CallUse::kChoice)], 80);
  EXPECT_GT(uses[static_cast<size_t>(CallUse::kDefaultSample)], 20);
  EXPECT_GT(uses[static_cast<size_t>(CallUse::kTrial)], 20);
  EXPECT_EQ(engine.Decide({Collective::kAllReduce, 512, 1, Role::kUnknown, 200}, allowed).decided_by,
            DecidedBy::kRule);
}

}  // namespace
}  // namespace dynamiccl
