// SPDX-License-Identifier: Apache-2.0
// Tests receipts. A passed argument is no proof if the calls of a step contradict it.
#include "tools/tune/setting_receipt.h"

#include <gmock/gmock.h>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

// The elements are float32, so each has four bytes.
RecordedStep StepOf(const std::vector<std::pair<Collective, int64_t>>& calls) {
  RecordedStep step{.ranks = 2, .marked = true};
  for (const auto& [collective, elements] : calls)
    step.operations.push_back({.collective = collective, .elements = elements});
  return step;
}

constexpr auto kReduce = Collective::kAllReduce;
constexpr auto kGather = Collective::kAllGather;
constexpr auto kScatter = Collective::kReduceScatter;

HookReport Ddp(std::vector<uint64_t> buckets, const Json& cap = 100) {
  return {.rank = 0,
          .ddp = DdpReport{.constructed = 1, .buckets = std::move(buckets)},
          .settings = {{"ddp.bucket_cap_mb", {100, cap, ""}}}};
}

SettingReceipt Bucket(const std::vector<HookReport>& reports, const RecordedStep& step) {
  return ReceiptsOf({{"ddp.bucket_cap_mb", 100}}, reports, &step).front();
}

TEST(BucketReceipt, IsInEffectWhereTheAllReducesAreTheBuckets) {
  const auto receipt = Bucket({Ddp({4000, 8000})}, StepOf({{kReduce, 2000}, {kReduce, 1000}}));
  EXPECT_EQ(receipt.standing, SettingStanding::kInEffect);
  EXPECT_THAT(receipt.how, HasSubstr("2 AllReduces a step"));
}

TEST(BucketReceipt, AllowsLossesAndCompressionAndSeveralBackwardPasses) {
  const auto standing = [](const RecordedStep& step) { return Bucket({Ddp({4000, 8000})}, step).standing; };
  EXPECT_EQ(standing(StepOf({{kReduce, 2000}, {kReduce, 1000}, {kReduce, 1}})), SettingStanding::kInEffect);
  EXPECT_EQ(standing(StepOf({{kReduce, 1000}, {kReduce, 500}})), SettingStanding::kInEffect);
  EXPECT_EQ(standing(StepOf({{kReduce, 2000}, {kReduce, 1000}, {kReduce, 2000}, {kReduce, 1000}})),
            SettingStanding::kInEffect);
}

TEST(BucketReceipt, IsNotInEffectWhereGradientsTravelOtherwise) {
  const auto hook_of_their_own = StepOf({{kReduce, 1000}, {kReduce, 1000}, {kReduce, 1000}});
  EXPECT_EQ(Bucket({Ddp({12000})}, hook_of_their_own).standing, SettingStanding::kNotInEffect);
  EXPECT_EQ(Bucket({Ddp({4000, 8000})}, StepOf({{kReduce, 2000}})).standing, SettingStanding::kNotInEffect);
}

// SyncBatchNorm sums its statistics in the backward pass. A model's first bucket may be smaller than the
// statistics.
TEST(BucketReceipt, AllowsStatisticsThatAreLargerThanTheSmallestBucket) {
  const auto report = Ddp({400, 400'000});
  const auto with = [](int64_t elements) {
    return StepOf({{kReduce, 100}, {kReduce, elements}, {kReduce, elements}, {kReduce, 100'000}});
  };
  EXPECT_EQ(Bucket({report}, with(2048)).standing, SettingStanding::kInEffect);
  EXPECT_EQ(Bucket({report}, with(20'000)).standing, SettingStanding::kNotInEffect);
}

TEST(BucketReceipt, OfSeveralModelsIsProvedOrLeftOpen) {
  HookReport two = Ddp({4000, 8000, 12000});
  two.ddp->constructed = 2;
  EXPECT_EQ(Bucket({two}, StepOf({{kReduce, 2000}, {kReduce, 3000}, {kReduce, 1000}})).standing,
            SettingStanding::kInEffect);
  const auto one_trains = Bucket({two}, StepOf({{kReduce, 2000}, {kReduce, 1000}}));
  EXPECT_EQ(one_trains.standing, SettingStanding::kNotProvable);
  EXPECT_THAT(one_trains.how, HasSubstr("2 AllReduces a step, 3 buckets of 2 objects of DDP"));
}

TEST(BucketReceipt, IsNotInEffectWhereTheHookDidNotRun) {
  const auto receipt = Bucket({}, StepOf({{kReduce, 1000}}));
  EXPECT_EQ(receipt.standing, SettingStanding::kNotInEffect);
  EXPECT_THAT(Describe(receipt), HasSubstr("Python ran with -S, -I or -E"));
}

TEST(BucketReceipt, IsNotInEffectWhereASubclassOrAnOldTorchHasAnotherValue) {
  const auto step = StepOf({{kReduce, 1000}});
  EXPECT_THAT(Bucket({Ddp({4000}, 25)}, step).how, HasSubstr("rank 0: the framework has 25"));
  HookReport old_torch = Ddp({4000});
  old_torch.settings["ddp.bucket_cap_mb"].reason = "no such argument";
  EXPECT_THAT(Bucket({old_torch}, step).how, HasSubstr("no such argument"));
  HookReport damaged{.rank = 1, .error = "s.json: cut"};
  EXPECT_THAT(Bucket({Ddp({4000}), damaged}, step).how, HasSubstr("rank 1: s.json: cut"));
}

TEST(BucketReceipt, IsNotProvableWithoutCalls) {
  EXPECT_EQ(ReceiptsOf({{"ddp.bucket_cap_mb", 100}}, {Ddp({4000})}, nullptr).front().standing,
            SettingStanding::kNotProvable);
  EXPECT_EQ(Bucket({Ddp({})}, StepOf({{kReduce, 1000}})).standing, SettingStanding::kNotProvable);
}

SettingStanding Sharded(const std::string& setting, const Json& asked, const RecordedStep& step) {
  const HookReport report{
      .rank = 0, .fsdp2 = Fsdp2Report{.wrapped = 3}, .settings = {{setting, {asked, asked, ""}}}};
  return ReceiptsOf({{setting, asked}}, {report}, &step).front().standing;
}

TEST(ShardReceipt, ReshardingShowsInTheGathers) {
  const auto kept = StepOf({{kGather, 10}, {kGather, 20}, {kScatter, 20}, {kScatter, 10}});
  const auto again = StepOf({{kGather, 10}, {kGather, 20}, {kGather, 20}, {kScatter, 20}, {kScatter, 10}});
  EXPECT_EQ(Sharded("fsdp2.reshard_after_forward", false, kept), SettingStanding::kInEffect);
  EXPECT_EQ(Sharded("fsdp2.reshard_after_forward", false, again), SettingStanding::kNotInEffect);
  EXPECT_EQ(Sharded("fsdp2.reshard_after_forward", true, again), SettingStanding::kInEffect);
}

// Three modules run two forward passes. Their gradients are scattered only after the second pass.
TEST(ShardReceipt, AccumulatedGradientsDoNotLookLikeResharding) {
  const auto pass = [](int gathers, bool scatters) {
    std::vector<std::pair<Collective, int64_t>> calls(static_cast<size_t>(gathers), {kGather, 10});
    if (scatters) calls.insert(calls.end(), 3, {kScatter, 10});
    return calls;
  };
  const auto both = [&](int gathers) {
    auto calls = pass(gathers, false);
    const auto last = pass(gathers, true);
    calls.insert(calls.end(), last.begin(), last.end());
    return StepOf(calls);
  };
  const auto standing = [](bool asked, const RecordedStep& step) {
    const std::string setting = "fsdp2.reshard_after_forward";
    const HookReport report{.rank = 0,
                            .fsdp2 = Fsdp2Report{.wrapped = 3, .passes = 2},
                            .settings = {{setting, {asked, asked, ""}}}};
    return ReceiptsOf({{setting, asked}}, {report}, &step).front().standing;
  };
  EXPECT_EQ(standing(false, both(3)), SettingStanding::kInEffect);
  EXPECT_EQ(standing(true, both(3)), SettingStanding::kNotInEffect);
  EXPECT_EQ(standing(true, both(5)), SettingStanding::kInEffect);
  EXPECT_EQ(standing(false, both(5)), SettingStanding::kNotInEffect);
}

// Parameters stay gathered between the passes. M modules need M gathers in the first forward pass and M - 1
// in each backward pass.
TEST(ShardReceipt, ParametersKeptBetweenPassesDoNotLookLikeNoResharding) {
  const auto gathers_again = [](int modules, int passes) {
    std::vector<std::pair<Collective, int64_t>> calls(static_cast<size_t>(modules + passes * (modules - 1)),
                                                      {kGather, 10});
    calls.insert(calls.end(), static_cast<size_t>(modules), {kScatter, 10});
    return GathersAgain({.wrapped = modules, .passes = passes}, StepOf(calls));
  };
  EXPECT_EQ(gathers_again(5, 8), true);
  EXPECT_EQ(gathers_again(5, 3), true);
  EXPECT_EQ(gathers_again(4, 4), std::nullopt);
}

// Three modules gather three times in the forward pass and then again in the backward pass.
TEST(ShardReceipt, BackwardPrefetchShowsInTheOrder) {
  const auto one = StepOf({{kGather, 1},
                           {kGather, 2},
                           {kGather, 3},
                           {kGather, 3},
                           {kGather, 2},
                           {kScatter, 3},
                           {kGather, 1},
                           {kScatter, 2},
                           {kScatter, 1}});
  const auto two = StepOf({{kGather, 1},
                           {kGather, 2},
                           {kGather, 3},
                           {kGather, 3},
                           {kGather, 2},
                           {kGather, 1},
                           {kScatter, 3},
                           {kScatter, 2},
                           {kScatter, 1}});
  EXPECT_EQ(Sharded("fsdp2.backward_prefetch", 2, two), SettingStanding::kInEffect);
  EXPECT_EQ(Sharded("fsdp2.backward_prefetch", 2, one), SettingStanding::kNotInEffect);
  EXPECT_EQ(Sharded("fsdp2.backward_prefetch", 1, one), SettingStanding::kInEffect);
  // The outermost module also gathers again, before the others.
  const auto outermost = StepOf({{kGather, 1},
                                 {kGather, 2},
                                 {kGather, 3},
                                 {kGather, 1},
                                 {kGather, 3},
                                 {kGather, 2},
                                 {kScatter, 3},
                                 {kScatter, 2},
                                 {kScatter, 1}});
  EXPECT_EQ(Sharded("fsdp2.backward_prefetch", 1, outermost), SettingStanding::kInEffect);
  // No gather is marked as part of the forward pass.
  EXPECT_EQ(Sharded("fsdp2.forward_prefetch", 1, one), SettingStanding::kNotProvable);
}

// Returns a step in which three modules gather in the forward pass. The first `ahead` gathers come before the
// second module computes.
RecordedStep Forward(size_t ahead) {
  auto step = StepOf({{kGather, 1}, {kGather, 2}, {kGather, 3}, {kScatter, 3}, {kScatter, 2}, {kScatter, 1}});
  for (size_t i = 0; i < ahead; ++i) step.operations[i].phase = Phase::kForward;
  return step;
}

TEST(ShardReceipt, ForwardPrefetchShowsInTheGathersBeforeAModuleComputes) {
  for (const int depth : {0, 1})
    for (const size_t ahead : {2u, 3u})
      EXPECT_EQ(Sharded("fsdp2.forward_prefetch", depth, Forward(ahead)),
                ahead == 2u + static_cast<size_t>(depth) ? SettingStanding::kInEffect
                                                         : SettingStanding::kNotInEffect)
          << depth << " " << ahead;
  // A depth of 2 would show as four gathers, but only three modules gather.
  EXPECT_EQ(Sharded("fsdp2.forward_prefetch", 2, Forward(3)), SettingStanding::kInEffect);
  // The outermost of the three modules has no parameters of its own.
  auto two_gather = StepOf({{kGather, 2}, {kGather, 3}, {kScatter, 3}, {kScatter, 2}});
  two_gather.operations[0].phase = Phase::kForward;
  EXPECT_EQ(Sharded("fsdp2.forward_prefetch", 0, two_gather), SettingStanding::kInEffect);
  EXPECT_EQ(Sharded("fsdp2.forward_prefetch", 1, two_gather), SettingStanding::kNotInEffect);
}

SettingStanding Grouped(const Fsdp2Report& fsdp2, const RecordedStep& step, int asked = 2) {
  const std::string setting = "fsdp2.modules_per_unit";
  const HookReport report{
      .rank = 0, .fsdp2 = fsdp2, .settings = {{setting, {asked, fsdp2.largest_unit, ""}}}};
  return ReceiptsOf({{setting, asked}}, {report}, &step).front().standing;
}

TEST(ShardReceipt, UnitsOfSeveralModulesShowInTheReduceScatters) {
  const Fsdp2Report two_units{.wrapped = 3, .largest_unit = 2, .longest_row = 4};
  EXPECT_EQ(Grouped(two_units, StepOf({{kScatter, 4}, {kScatter, 4}, {kScatter, 1}})),
            SettingStanding::kInEffect);
  // The outermost module has no parameters of its own, and there are two backward passes.
  EXPECT_EQ(Grouped(two_units, StepOf({{kScatter, 4}, {kScatter, 4}, {kScatter, 4}, {kScatter, 4}})),
            SettingStanding::kInEffect);
  EXPECT_EQ(
      Grouped(two_units, StepOf({{kScatter, 2}, {kScatter, 2}, {kScatter, 2}, {kScatter, 2}, {kScatter, 1}})),
      SettingStanding::kNotInEffect);
  EXPECT_EQ(Grouped(two_units, StepOf({{kReduce, 4}})), SettingStanding::kNotProvable);
  // No modules of one class follow one another, so nothing was grouped.
  EXPECT_EQ(Grouped({.wrapped = 3}, StepOf({{kScatter, 4}, {kScatter, 4}, {kScatter, 1}})),
            SettingStanding::kNotInEffect);
}

TEST(ShardReceipt, HybridShardingShowsInTheCommunicators) {
  auto hybrid = StepOf({{kGather, 8}, {kScatter, 8}, {kReduce, 4}});
  hybrid.ranks = 4;
  EXPECT_EQ(Sharded("fsdp2.shard_ranks", 2, hybrid), SettingStanding::kNotInEffect);
  hybrid.shard_ranks = 2;
  hybrid.operations[0].axis = hybrid.operations[1].axis = Axis::kShard;
  hybrid.operations[2].axis = Axis::kReplicate;
  EXPECT_EQ(Sharded("fsdp2.shard_ranks", 2, hybrid), SettingStanding::kInEffect);
  hybrid.shard_ranks = 1;
  EXPECT_EQ(Sharded("fsdp2.shard_ranks", 2, hybrid), SettingStanding::kNotInEffect);
}

SettingStanding OfDdp(const std::string& setting, bool asked, const HookReport& given,
                      const RecordedStep& step) {
  HookReport report = given;
  report.settings = {{setting, {asked, asked, ""}}};
  return ReceiptsOf({{setting, asked}}, {report}, &step).front().standing;
}

TEST(DdpReceipt, AStaticGraphCountsTheUseOfParametersOnce) {
  HookReport report = Ddp({8000});
  report.ddp->parameters = {4000, 4000};
  auto step = StepOf({{kReduce, 2000}});
  EXPECT_EQ(OfDdp("ddp.static_graph", true, report, step), SettingStanding::kNotProvable);
  const std::map<size_t, bool> is_static = {{0, false}, {1, true}, {12, false}};
  for (const auto& [count, shows] : is_static) {
    step.int32_reduces = std::map<int64_t, size_t>{{7, 3}};
    if (count > 0) (*step.int32_reduces)[2] = count;
    for (const bool asked : {false, true})
      EXPECT_EQ(OfDdp("ddp.static_graph", asked, report, step),
                asked == shows ? SettingStanding::kInEffect : SettingStanding::kNotInEffect)
          << count;
  }
  report.ddp->constructed = 2;
  EXPECT_EQ(OfDdp("ddp.static_graph", true, report, step), SettingStanding::kNotProvable);
}

TEST(DdpReceipt, ViewsOfBucketsShowInTheMemoryOfGradients) {
  constexpr const char* kViews = "ddp.gradient_as_bucket_view";
  HookReport report = Ddp({8000, 4000});
  report.ddp->parameters = {4000, 4000, 4000};
  const auto step = StepOf({{kReduce, 1000}, {kReduce, 2000}});
  EXPECT_EQ(OfDdp(kViews, true, report, step), SettingStanding::kNotProvable);
  report.ddp->gradient_pieces = {4000, 8000};
  EXPECT_EQ(OfDdp(kViews, true, report, step), SettingStanding::kInEffect);
  EXPECT_EQ(OfDdp(kViews, false, report, step), SettingStanding::kNotInEffect);
  // The calls that reduce the gradients do not match the buckets.
  EXPECT_EQ(OfDdp(kViews, true, report, StepOf({{kReduce, 3000}})), SettingStanding::kNotInEffect);
  report.ddp->gradient_pieces = {4000, 4000, 4000};
  EXPECT_EQ(OfDdp(kViews, true, report, step), SettingStanding::kNotInEffect);
  EXPECT_EQ(OfDdp(kViews, false, report, step), SettingStanding::kInEffect);
  report.ddp->buckets = {4000, 4000, 4000};
  EXPECT_EQ(OfDdp(kViews, true, report, step), SettingStanding::kNotProvable);
}

}  // namespace
}  // namespace dynamiccl
