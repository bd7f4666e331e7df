// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/scale/scale_on_paper.h"

#include <gtest/gtest.h>

#include "src/decision/switching/switch_message.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/library_pick.h"

namespace dynamiccl::testing {
namespace {

constexpr ScaleOptions kShort{.steps = 400, .seeds = 2};

ScaledStep StepOf(const char* framework, std::vector<NetworkLoad> loads = {}) {
  const auto step = StepAtScale({FindDescribedSystem("dgx-h100"), framework, 64, std::move(loads)});
  EXPECT_TRUE(step);
  return *step;
}

uint64_t Sent(const SwitchCost& cost, SwitchKind kind) {
  return cost.messages[static_cast<size_t>(kind)];
}

// Gives every config of every key this ratio. The program waits for the same share of the config's time as of
// NCCL's.
ScaledStep WithRatio(ScaledStep step, double ratio) {
  step.best_ns = step.compute_ns + ratio * (step.nccl_ns - step.compute_ns);
  for (TrueKey& key : step.keys) {
    for (TrueKey::Config& config : key.configs) {
      config.ratio = ratio;
      config.exposed = key.exposed;
    }
  }
  return step;
}

// The leader asks every rank, itself included, every rank answers, and the leader tells each the verdict.
TEST(SwitchCost, IsThreeMessagesARank) {
  for (const int ranks : {2, 64, 512}) {
    const SwitchCost cost = CostOfSwitch(ranks, {.leader_message_ns = 1'000}, true);
    const auto n = static_cast<uint64_t>(ranks);
    EXPECT_TRUE(cost.committed);
    EXPECT_EQ(cost.attempts, 1);
    EXPECT_EQ(Sent(cost, SwitchKind::kPrepare), n);
    EXPECT_EQ(Sent(cost, SwitchKind::kPledge), n);
    EXPECT_EQ(Sent(cost, SwitchKind::kVerdict), n);
    EXPECT_EQ(cost.total(), 3 * n);
    EXPECT_EQ(cost.waited_ns, 0);
  }
}

// 600 messages of 100 us take 60 ms, but after 50 ms the leader and the ranks send again.
TEST(SwitchCost, RepeatsWhereTheLeaderIsSlow) {
  const SwitchCost cost = CostOfSwitch(600, {.leader_message_ns = 100'000}, false);
  EXPECT_TRUE(cost.committed);
  EXPECT_GE(Sent(cost, SwitchKind::kPrepare), 1200u);
  EXPECT_GT(Sent(cost, SwitchKind::kPledge), 600u);
}

// Eight calls of 0.2 ms end before 512 ranks are asked, so attempts fail until the boundary is far enough
// ahead.
TEST(SwitchCost, TriesAgainWhereTheBoundaryIsTooNear) {
  const SwitchCost cost = CostOfSwitch(512, {.call_ns = 200'000}, true);
  EXPECT_TRUE(cost.committed);
  EXPECT_GT(cost.attempts, 1);
  EXPECT_GE(Sent(cost, SwitchKind::kPrepare), 512u * static_cast<uint64_t>(cost.attempts));
}

TEST(MessageRates, AreThoseOfTheRuntime) {
  EXPECT_DOUBLE_EQ(DigestRate(4096, 128),
                   2048);  // There is a checkpoint every 256 calls, so every second report has one.
  EXPECT_DOUBLE_EQ(DigestRate(4096, 5000), 4096);  // There is at most one report per second.
  EXPECT_DOUBLE_EQ(TimesRate(4096, 10), 160);      // 16 ranks send their times, each time in its own message.
  EXPECT_DOUBLE_EQ(TimesRate(4096, 400), 2400);    // Four times go together, and the rest every 20 ms.
}

// At NCCL's picks, a step of the closed loop takes the time that the simulator gives, and a call on a healthy
// fabric the time of the closed form.
TEST(ScaledStep, IsTheSimulatedStep) {
  const ScaledStep step = StepOf("fsdp2");
  const ScaleResult result = RunSteps(WithRatio(step, 1), WithRatio(step, 1), 64, {.steps = 20, .seeds = 1});
  EXPECT_NEAR(result.at_end[0], 0, 1e-6);
  const System system = SystemOf(*FindDescribedSystem("dgx-h100"));
  uint64_t bytes = 0;
  for (const TrueKey& key : step.keys) {
    if (key.key.collective != Collective::kAllGather ||
        std::ranges::count(step.places, &key - step.keys.data()) < 2)
      continue;
    bytes = LowerBound(key.key.size_class);
    const CollectiveConfig pick = LibraryPick(system, key.key.collective, bytes, 64, 8);
    const CollectiveTimes times(system, 64, 8);
    const CollectiveConfig all{pick.algorithm, pick.protocol, 0};
    // A size class is a quarter of an octave.
    const double least_ns = 1e3 * times.Microseconds(key.key.collective, bytes, all);
    EXPECT_GE(key.nccl_ns, least_ns);
    EXPECT_LE(key.nccl_ns, 1.2 * least_ns);
  }
  EXPECT_GT(bytes, 0u);
}

TEST(ScaledStep, TakesLongerUnderALoad) {
  const ScaledStep healthy = StepOf("ddp"), slow = StepOf("ddp", {{.node = 0, .share = 0.75}});
  EXPECT_LE(healthy.best_ns, healthy.nccl_ns);
  EXPECT_GT(slow.nccl_ns, 1.5 * healthy.nccl_ns);
  EXPECT_NEAR(slow.compute_ns, healthy.compute_ns, 0.02 * healthy.compute_ns);
}

// If all configs are equal, nothing is gained, only timing costs, and the regret is 0 for any choice.
TEST(ScaleOnPaper, EqualConfigsGainNothing) {
  const ScaledStep step = WithRatio(StepOf("fsdp2"), 1);
  const ScaleResult result = RunSteps(step, step, 64, kShort);
  EXPECT_DOUBLE_EQ(result.to_win(), 0);
  for (size_t seed = 0; seed < result.gained.size(); ++seed) {
    EXPECT_LE(result.gained[seed], 1e-9);
    EXPECT_GE(result.gained[seed], -0.005);
    EXPECT_LE(result.worst_20[seed], 0.01);
    EXPECT_NEAR(result.at_end[seed], 0, 1e-6);
  }
}

// Without a config to try, the job takes the same time with and without the guard.
TEST(ScaleOnPaper, NothingToTryCostsNothing) {
  ScaledStep step = StepOf("ddp");
  for (TrueKey& key : step.keys) key.configs.clear();
  step.best_ns = step.nccl_ns;
  const ScaleResult result = RunSteps(step, step, 64, kShort);
  EXPECT_GE(result.gained[0], -0.005);
  EXPECT_NEAR(result.at_end[0], 0, 1e-6);
  EXPECT_NEAR(result.regret(), 0, 0.005);
}

TEST(ScaleOnPaper, FindsWhatIsTwiceAsFast) {
  const ScaledStep slow = StepOf("ddp", {{.node = 0, .share = 0.75}});
  const ScaledStep step = WithRatio(slow, 0.5);
  const ScaleResult result = RunSteps(step, step, 64, kShort);
  EXPECT_GT(result.to_win(), 0.3);
  for (const double gained : result.gained) EXPECT_GT(gained, 0.5 * result.to_win());
  for (const double at_end : result.at_end) EXPECT_NEAR(at_end, 0, 0.03);
}

}  // namespace
}  // namespace dynamiccl::testing
