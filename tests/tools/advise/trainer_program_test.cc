// SPDX-License-Identifier: Apache-2.0
// The expected values come from the generator, which equals recorded runs call by call, and from steps that
// are short enough to add up by hand.
#include "tools/advise/trainer_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tools/advise/step_prediction.h"

namespace dynamiccl {
namespace {

// Returns a system with Ring/Simple only. AllReduce of S bytes on 2 ranks takes base + 2 hops + S / gbps.
System Link(double base_us, double gbps) {
  System system{.name = "link", .source = "made up", .ranks_per_node = 2, .max_channels = 1};
  system.path(Algorithm::kRing, Protocol::kSimple) = {base_us, 0, 0, gbps, gbps, 0};
  return system;
}

AdvisedJob Job(const SettingTexts& settings, WorldShape world = {2, 1, 0}) {
  AdvisedJob job{.framework = std::string(kTrainer)};
  job.model = *ParseModel("gpt:layers=4,hidden=64,sequence=32,vocabulary=256,head_bias=true");
  job.world = world;
  job.settings = settings;
  return job;
}

void ExpectGeneratorsCalls(const AdvisedJob& job, const std::string& what) {
  const System system = Link(10, 1);
  SystemDemands demands(system);
  const auto program = ProgramOfTrainer(job, {1e6, 1}, 2, 2, demands);
  const auto step = OperationsOf(job);
  ASSERT_TRUE(program.has_value() && step.has_value()) << what;
  ASSERT_EQ(program->operations.size(), 2 * step->size()) << what;
  for (size_t i = 0; i < program->operations.size(); ++i) {
    const WireOperation& ours = program->operations[i];
    EXPECT_EQ(ours, (*step)[i % step->size()]) << what << ", call " << i;
  }
}

std::string Words(const SettingTexts& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += name + "=" + value + " ";
  return text;
}

TEST(TrainerProgram, IssuesTheGeneratorsCalls) {
  std::mt19937 random(7);
  const auto one_of = [&](std::vector<std::string> values) { return values[random() % values.size()]; };
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    SettingTexts settings = {
        {"stage", one_of({"0", "1", "2", "3"})},
        {"bucket_bytes", one_of({"4096", "65536", "300000", "17592186044416"})},
        {"unit", one_of({"block", "block", "half_block", "parameter"})},
        {"unit_blocks", one_of({"1", "1", "2", "3"})},
        {"exchange", one_of({"collective", "collective", "owner", "all_reduce", "layer_owner"})},
        {"micro_steps", one_of({"1", "2"})},
        {"overlap", one_of({"true", "false"})},
        {"prefetch", one_of({"true", "false"})},
        {"prefetch_units", one_of({"1", "2", "3"})},
        {"hybrid", one_of({"shard", "shard", "hpz"})},
        {"dtype", one_of({"float32", "bfloat16"})},
        {"reduce_type", "float32"}};
    const WorldShape world{4, 1, one_of({"0", "2"}) == "2" ? 2 : 0};
    const AdvisedJob job = Job(settings, world);
    if (!OperationsOf(job)) continue;  // The trainer refuses this combination.
    ++compared;
    ExpectGeneratorsCalls(job, Words(settings) + (world.shard > 0 ? "hybrid" : ""));
  }
  EXPECT_GT(compared, 100);
}

int64_t Step(const SettingTexts& settings, const System& system, const TrainerCompute& compute) {
  const auto predicted = StepPrediction(system, 2).Of(Job(settings), compute);
  EXPECT_TRUE(predicted.has_value());
  return predicted ? predicted->step_ns : 0;
}

// Nothing overlaps, so a step is the sum of computing, each bucket and the scalars.
TEST(StepPrediction, WithoutOverlapAStepIsASum) {
  const TrainerCompute compute{9e6, 0};
  for (const char* const stage : {"0", "2"}) {
    const SettingTexts settings = {{"stage", stage}, {"overlap", "false"}, {"bucket_bytes", "100000"}};
    const auto operations = OperationsOf(Job(settings));
    double us = 9000;
    for (const WireOperation& one : *operations) {
      const double volume = one.collective == Collective::kAllReduce ? 1 : 0.5;
      us += 10 + volume * static_cast<double>(one.Bytes()) / 1000;
    }
    EXPECT_NEAR(static_cast<double>(Step(settings, Link(10, 1), compute)), us * 1e3, 1e3) << stage;
  }
}

// With one bucket for all gradients, nothing hides the AllReduce after the backward pass.
TEST(StepPrediction, OneBucketHidesNothing) {
  const SettingTexts settings = {{"stage", "0"}, {"bucket_bytes", "17592186044416"}};
  const auto operations = OperationsOf(Job(settings));
  ASSERT_EQ(operations->size(), 2u);
  const double us = 9000 + 10 + static_cast<double>(operations->front().Bytes()) / 1000 + 10 + 8e-3;
  EXPECT_NEAR(static_cast<double>(Step(settings, Link(10, 1), {9e6, 0})), us * 1e3, 1e3);
}

// If each call has a high fixed cost, one bucket for everything is best.
TEST(StepPrediction, DearCallsWantLargeBuckets) {
  const TrainerCompute compute{9e6, 0};
  const auto of = [&](const char* bytes, double base_us) {
    return Step({{"stage", "0"}, {"bucket_bytes", bytes}}, Link(base_us, 1), compute);
  };
  EXPECT_LT(of("524288", 0), of("17592186044416", 0));
  EXPECT_GT(of("65536", 2000), of("524288", 2000));
  EXPECT_GT(of("524288", 2000), of("17592186044416", 2000));
}

// 12 parameters of 1 MiB each compute for 2 ms in the backward pass, and the link has 1 GB/s. A bucket of k
// parameters takes 2.5 + 1.05 k ms. From k = 3 on, the link keeps up with the 2 k ms of computing, and only
// the last bucket is exposed. The best k is therefore 3.
TEST(StepPrediction, KnowsTheBestBucket) {
  constexpr double kMebibyteMs = 1.048576, kCallMs = 2.5;
  AdvisedJob job{.framework = "ddp"};
  for (int i = 0; i < 12; ++i) job.model.parameters.push_back({fmt::format("h.{}.weight", i), {262144}});
  job.world = {2, 1, 0};
  int64_t best = INT64_MAX, best_size = 0;
  for (const int64_t size : {1, 2, 3, 4, 6, 12}) {
    job.settings["bucket_bytes"] = job.settings["first_bucket_bytes"] = std::to_string(size << 20);
    const auto step = StepPrediction(Link(kCallMs * 1e3, 1), 2).Of(job, {36e6, 0});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    if (size >= 3) {
      EXPECT_NEAR(static_cast<double>(step->step_ns),
                  (36 + kCallMs + static_cast<double>(size) * kMebibyteMs) * 1e6, 2e3);
    }
    if (step->step_ns < best) {
      best = step->step_ns;
      best_size = size;
    }
  }
  EXPECT_EQ(best_size, 3);
}

// Only two buffers exist, so a link that is slower than computing delays the backward pass with any bucket
// size.
TEST(StepPrediction, ASlowLinkSetsThePace) {
  const SettingTexts settings = {{"stage", "2"}, {"bucket_bytes", "65536"}};
  const auto operations = OperationsOf(Job(settings));
  double us = 0;
  for (const WireOperation& one : *operations)
    us += (one.collective == Collective::kAllReduce ? 1 : 0.5) * static_cast<double>(one.Bytes()) / 10;
  const auto step = static_cast<double>(Step(settings, Link(0, 0.01), {1e6, 0}));
  EXPECT_GT(step, us * 1e3);
  EXPECT_LT(step, us * 1e3 + 1.1e6);
}

}  // namespace
}  // namespace dynamiccl
