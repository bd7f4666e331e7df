// SPDX-License-Identifier: Apache-2.0
// The expected calls follow from DeepSpeed's rule: a bucket is sent before a gradient that would make it
// exceed reduce_bucket_size, and a gradient that is larger than a bucket travels alone.
#include "tools/tune/deepspeed_settings.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/support/test_seed.h"

namespace dynamiccl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr auto kReduce = Collective::kAllReduce;
constexpr auto kGather = Collective::kAllGather;
constexpr auto kScatter = Collective::kReduceScatter;

RecordedStep StepOf(const std::vector<std::pair<Collective, int64_t>>& calls) {
  RecordedStep step{.ranks = 2, .marked = true};
  for (const auto& [collective, elements] : calls)
    step.operations.push_back(
        {.collective = collective, .data_type = DataType::kFloat32, .elements = elements});
  return step;
}

DeepSpeedReport Report(int stage, std::vector<int64_t> parameters) {
  DeepSpeedReport report{.constructed = 1, .stage = stage, .parameters = std::move(parameters)};
  for (size_t i = 0; i < report.parameters.size(); ++i) report.names.push_back(fmt::format("{}.weight", i));
  report.largest_module = *std::ranges::max_element(report.parameters);
  report.values = {{"reduce_bucket_size", 500'000'000}, {"overlap_comm", false}};
  return report;
}

// Returns the sizes of the buckets that carry gradients which arrive in this order.
std::vector<int64_t> Buckets(const std::vector<int64_t>& gradients, int64_t limit) {
  std::vector<int64_t> sent;
  int64_t open = 0;
  for (const int64_t one : gradients) {
    if (open > 0 && open + one > limit) sent.push_back(std::exchange(open, 0));
    open += one;
  }
  sent.push_back(open);
  return sent;
}

SettingStanding Reduces(int64_t limit, const DeepSpeedReport& report, const std::vector<int64_t>& sizes) {
  std::vector<std::pair<Collective, int64_t>> calls;
  for (const int64_t size : sizes) calls.emplace_back(report.stage == 3 ? kScatter : kReduce, size);
  return JudgeDeepSpeed("deepspeed.reduce_bucket_size", limit, report, StepOf(calls)).standing;
}

TEST(DeepSpeedReceipt, BucketsOfAnyOrderOfGradientsAreInEffect) {
  std::mt19937_64 random(test::TestSeed(1));
  std::uniform_int_distribution<int64_t> size(1000, 9000);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> gradients(12);
    for (int64_t& one : gradients) one = size(random);
    const DeepSpeedReport report = Report(1 + trial % 3, gradients);
    std::ranges::shuffle(gradients, random);
    for (const int64_t limit : {500, 10'000, 30'000, 1'000'000})
      EXPECT_EQ(Reduces(limit, report, Buckets(gradients, limit)), SettingStanding::kInEffect) << limit;
  }
}

TEST(DeepSpeedReceipt, BucketsOfAnotherSizeAreNot) {
  const DeepSpeedReport report = Report(2, std::vector<int64_t>(16, 4000));
  const std::vector<int64_t> one(1, 64'000), four(4, 16'000), sixteen(16, 4000);
  EXPECT_EQ(Reduces(16'000, report, one), SettingStanding::kNotInEffect);
  EXPECT_EQ(Reduces(16'000, report, four), SettingStanding::kInEffect);
  EXPECT_EQ(Reduces(16'000, report, sixteen), SettingStanding::kNotInEffect);
  EXPECT_EQ(Reduces(100, report, sixteen), SettingStanding::kInEffect);
  EXPECT_EQ(Reduces(16'000, report, {}), SettingStanding::kNotProvable);
}

TEST(DeepSpeedReceipt, GathersThatAreNotDividedAreFound) {
  const DeepSpeedReport report = Report(1, std::vector<int64_t>(16, 4000));
  const auto judge = [&](const RecordedStep& step) {
    return JudgeDeepSpeed("deepspeed.allgather_bucket_size", 16'000, report, step);
  };
  EXPECT_THAT(judge(StepOf({{kGather, 64'000}})).how, HasSubstr("all_gather_into_tensor"));
  EXPECT_EQ(judge(StepOf({{kGather, 64'000}})).standing, SettingStanding::kNotInEffect);
  EXPECT_EQ(
      judge(StepOf({{kGather, 16'000}, {kGather, 16'000}, {kGather, 16'000}, {kGather, 16'000}})).standing,
      SettingStanding::kInEffect);
}

TEST(DeepSpeedReceipt, PrefetchingShowsInGathersOfSeveralModules) {
  const DeepSpeedReport report = Report(3, std::vector<int64_t>(16, 4000));
  const auto judge = [&](int64_t limit, int64_t largest) {
    return JudgeDeepSpeed("deepspeed.stage3_prefetch_bucket_size", limit, report,
                          StepOf({{kGather, 4000}, {kGather, largest}}))
        .standing;
  };
  EXPECT_EQ(judge(12'000, 12'000), SettingStanding::kInEffect);
  EXPECT_EQ(judge(12'000, 60'000), SettingStanding::kNotInEffect);
  EXPECT_EQ(judge(0, 4000), SettingStanding::kInEffect);
  EXPECT_EQ(judge(0, 12'000), SettingStanding::kNotInEffect);
  EXPECT_EQ(judge(1000, 4000), SettingStanding::kNotProvable);
}

TEST(DeepSpeedReceipt, ParametersThatStayAreGatheredAfterTheOptimizer) {
  const DeepSpeedReport report = Report(3, {4000, 64, 4000, 64});
  const auto judge = [&](int64_t threshold, const RecordedStep& step) {
    return JudgeDeepSpeed("deepspeed.stage3_param_persistence_threshold", threshold, report, step).standing;
  };
  const auto two = StepOf({{kGather, 8128}, {kScatter, 8128}, {kGather, 64}, {kGather, 64}});
  EXPECT_EQ(judge(100, two), SettingStanding::kInEffect);
  EXPECT_EQ(judge(0, two), SettingStanding::kNotInEffect);
  EXPECT_EQ(judge(5000, two), SettingStanding::kNotInEffect);
}

TEST(DeepSpeedCandidates, AreSizesThatMakeOtherCalls) {
  const std::vector<Candidate> candidates = DeepSpeedCandidates(Report(2, std::vector<int64_t>(16, 4000)));
  std::vector<std::string> names;
  for (const Candidate& one : candidates) names.push_back(one.Name());
  EXPECT_EQ(names, (std::vector<std::string>{"reduce_bucket_size=16000", "reduce_bucket_size=4000",
                                             "overlap_comm=true"}));
  DeepSpeedReport small = Report(3, std::vector<int64_t>(16, 4000));
  small.values["reduce_bucket_size"] = 4000;
  small.values["stage3_param_persistence_threshold"] = 100'000;
  names.clear();
  for (const Candidate& one : DeepSpeedCandidates(small)) names.push_back(one.Name());
  EXPECT_THAT(names, Contains("reduce_bucket_size=64000"));
  EXPECT_THAT(names, Contains("stage3_param_persistence_threshold=0"));
}

TEST(DeepSpeedSettings, AreLinesOfItsConfiguration) {
  EXPECT_EQ(DeepSpeedLines({{"deepspeed.overlap_comm", true}, {"deepspeed.reduce_bucket_size", 5000}}),
            "\"zero_optimization\": {\"overlap_comm\": true, \"reduce_bucket_size\": 5000}\n");
  EXPECT_EQ(DeepSpeedLines({{"ddp.bucket_cap_mb", 5}}), "");
}

// The job has sixteen gradients in four buckets, an AllReduce of the norm, and one AllGather.
TEST(DeepSpeedSettings, GiveTheSimulatedJobItsCalls) {
  DeepSpeedReport report = Report(2, std::vector<int64_t>(16, 4000));
  report.values["reduce_bucket_size"] = 16'000;
  auto job = DeepSpeedJob(report, StepOf({{kReduce, 16'000}}));
  ASSERT_TRUE(job) << job.error().message;
  const auto reduces = [&] {
    const auto operations = OperationsOf(*job);
    EXPECT_TRUE(operations);
    return std::ranges::count_if(
        *operations, [](const WireOperation& one) { return one.collective == kReduce && one.elements > 1; });
  };
  EXPECT_EQ(reduces(), 4);
  EXPECT_TRUE(SetDeepSpeed("reduce_bucket_size", 4000, *job));
  EXPECT_EQ(reduces(), 16);
  EXPECT_FALSE(SetDeepSpeed("stage3_prefetch_bucket_size", 0, *job));
  report.names.clear();
  EXPECT_FALSE(DeepSpeedJob(report, StepOf({{kReduce, 16'000}})));
}

}  // namespace
}  // namespace dynamiccl
