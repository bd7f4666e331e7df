// SPDX-License-Identifier: Apache-2.0
#include "tools/ab/turn_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSmall = 1 << 20, kLarge = 3 << 20;

MeasurementContext Fabric() {
  MeasurementContext fabric{"rail", {}};
  fabric.model.fabric = {2, 2, 8, {1, 20}, {5, 10}};
  fabric.model.constants = NcclHopperConstants(2);
  return fabric;
}

TraceCall CallOf(Collective collective, uint64_t bytes, Role role) {
  TraceCall call;
  call.communicator = 1;
  call.issued.call.collective = collective;
  call.issued.call.bytes = bytes;
  call.decision = DecisionView{};
  call.decision->role = role;
  call.decision->phase = Phase::kForward;
  return call;
}

// Returns the calls of a job with gathers of two sizes and one reduction, all with NCCL's choice.
SectionCalls Calls() {
  SectionCalls calls;
  calls.communicators[1] = {7, 0, 2, 2};
  calls.calls = {CallOf(Collective::kAllGather, kSmall, Role::kParameterGather),
                 CallOf(Collective::kAllGather, kLarge, Role::kParameterGather),
                 CallOf(Collective::kReduceScatter, kLarge, Role::kGradientReduce)};
  return calls;
}

TurnComparison Compared(std::vector<SettingTimes> settings) {
  TurnComparison comparison;
  comparison.turn_steps = 3;
  comparison.calls_of_step = 3;
  comparison.settings.push_back({.name = "default", .turns = 10, .step_ms = 20});
  for (SettingTimes& each : settings) comparison.settings.push_back(std::move(each));
  return comparison;
}

SettingTimes Times(double ratio, double low, double high) {
  return {.name = "",
          .turns = 10,
          .step_ms = 20 * ratio,
          .samples_ms = {},
          .ratio = ratio,
          .interval = {low, high}};
}

TEST(TurnEffects, AreLogarithmsOfTheRatiosWithTheErrorOfTheirIntervals) {
  const SectionCalls calls = Calls();
  const ComparedJob job{{"default", "allgather=ring/simple/1"}, &calls, Fabric(), false};
  const auto effects = EffectsOfTurns(Compared({Times(0.8, 0.76, 0.84)}), job);
  ASSERT_TRUE(effects) << effects.error().message;
  ASSERT_EQ(effects->file.effects.size(), 1u);
  const MeasuredEffect& effect = effects->file.effects[0];
  EXPECT_EQ(effect.topology, "rail");
  EXPECT_EQ(effect.collectives, 1 << static_cast<int>(Collective::kAllGather));
  EXPECT_EQ(effect.config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 1}));
  EXPECT_EQ(effect.channel_count, ChannelCount::kOne);
  EXPECT_DOUBLE_EQ(effect.log_ratio, std::log(0.8));
  EXPECT_NEAR(effect.error, (std::log(0.84) - std::log(0.76)) / 3.92, 1e-12);
  EXPECT_EQ(effect.steps, 20u);
  // The mean size is weighted by bytes over the two sizes: (1 + 9) / (1 + 3) MiB.
  EXPECT_EQ(effect.bytes, (5u << 20) / 2);
  EXPECT_EQ(effect.role, Role::kParameterGather);
  EXPECT_EQ(effect.phase, Phase::kForward);
  EXPECT_FALSE(effect.slowness);
}

TEST(TurnEffects, OfCallsWithSeveralRolesHaveNone) {
  const SectionCalls calls = Calls();
  const ComparedJob job{{"default", "ring/simple/8"}, &calls, Fabric(), false};
  const auto effects = EffectsOfTurns(Compared({Times(1.1, 1, 1.2)}), job);
  ASSERT_TRUE(effects && effects->file.effects.size() == 1);
  EXPECT_EQ(effects->file.effects[0].role, Role::kUnknown);
  EXPECT_EQ(effects->file.effects[0].phase, Phase::kForward);
  EXPECT_EQ(effects->file.effects[0].channel_count, ChannelCount::kMany);
}

TEST(TurnEffects, SlownessAndShareComeFromTimedCalls) {
  SectionCalls calls = Calls();
  while (calls.calls.size() < 30) calls.calls.push_back(calls.calls[calls.calls.size() - 3]);
  double bytes = 0, slowness = 0, us = 0;
  for (TraceCall& call : calls.calls) {
    CollectiveCall& issued = call.issued.call;
    issued.bytes += issued.bytes / 6;  // The size stays inside its size class.
    const double expected_us =
        TimeOfNcclsChoice(Fabric().model, issued.collective, LowerBound(SizeClassOf(issued.bytes)),
                          kLeaveNcclAlone, NcclConfigs(issued.collective));
    // The call is four times as slow as expected.
    call.issued.duration_ns = static_cast<int64_t>(4000 * expected_us);
    bytes += static_cast<double>(issued.bytes);
    slowness += 2 * static_cast<double>(issued.bytes);
    us += static_cast<double>(call.issued.duration_ns) / 1e3;
  }
  const ComparedJob job{{"default", "ring/simple/1"}, &calls, Fabric(), false};
  const auto effects = EffectsOfTurns(Compared({Times(0.8, 0.76, 0.84)}), job);
  ASSERT_TRUE(effects && effects->file.effects.size() == 1);
  const MeasuredEffect& effect = effects->file.effects[0];
  // A job's guard asks by the same definition of slowness (TableGuard::Knowledge).
  ASSERT_TRUE(effect.slowness && effect.share);
  EXPECT_NEAR(*effect.slowness, slowness / bytes, 0.01);
  EXPECT_NEAR(*effect.share, us / 30 * 3 / 20e3, 1e-9);
}

TEST(TurnEffects, LeaveOutWhatIsNoEffectOfOneConfig) {
  const SectionCalls calls = Calls();
  const double kUnbounded = std::numeric_limits<double>::infinity();
  const ComparedJob job{{"default", "allreduce=ring/ll/1", "allgather=ring/ll/1,reducescatter=ring/ll/2",
                         "nccl", "allgather=ring/ll/1"},
                        &calls,
                        Fabric(),
                        false};
  const auto effects = EffectsOfTurns(
      Compared({Times(1, 0.9, 1.1), Times(1, 0.9, 1.1), Times(1, 0.9, 1.1), Times(1, 0, kUnbounded)}), job);
  ASSERT_TRUE(effects) << effects.error().message;
  EXPECT_TRUE(effects->file.effects.empty());
  EXPECT_EQ(effects->left_out, 4u);
}

TEST(TurnEffects, NeedNcclsChoiceAsTheFirstSetting) {
  EXPECT_TRUE(CheckIsNcclsChoice("default", false));
  EXPECT_TRUE(CheckIsNcclsChoice("nccl", true));
  const Status forced = CheckIsNcclsChoice("ring/ll/1", false);
  ASSERT_FALSE(forced);
  EXPECT_THAT(forced.error().message, HasSubstr("the first setting is 'ring/ll/1'"));
  EXPECT_FALSE(CheckIsNcclsChoice("default", true));
}

TEST(TurnEffects, OfSettingsUnderWhichAPolicyDecidesAreLeftOut) {
  const SectionCalls calls = Calls();
  const ComparedJob job{{"nccl", "allgather=ring/simple/1", "ring/simple/1"}, &calls, Fabric(), true};
  const auto effects = EffectsOfTurns(Compared({Times(0.8, 0.76, 0.84), Times(0.8, 0.76, 0.84)}), job);
  ASSERT_TRUE(effects) << effects.error().message;
  // Under the first of the two settings, the policy chooses for the reductions.
  EXPECT_EQ(effects->left_out, 1u);
  EXPECT_EQ(effects->file.effects.size(), 1u);
}

}  // namespace
}  // namespace dynamiccl
