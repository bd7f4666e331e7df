// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tools/demo/demo_steps.h"
#include "tools/demo/trainer_run.h"

namespace dynamiccl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ObservedSizes SizesOf(int n) {
  ObservedSizes sizes;
  for (int i = 0; i < n; ++i) {
    const uint64_t bytes = uint64_t{1024} << i;
    sizes[Collective::kAllReduce][SizeClassOf(bytes)] = bytes;
  }
  return sizes;
}

TEST(HeldOutClasses, AreAThirdAndNeverAtTheEnds) {
  const auto held_out = HeldOutClasses(SizesOf(9)).at(Collective::kAllReduce);
  EXPECT_EQ(held_out.size(), 3u);
  EXPECT_FALSE(held_out.contains(SizeClassOf(1024)));
  EXPECT_FALSE(held_out.contains(SizeClassOf(1024 << 8)));
}

TEST(HeldOutClasses, OneOrTwoSizesAreAllSeen) {
  EXPECT_TRUE(HeldOutClasses(SizesOf(1)).empty());
  EXPECT_TRUE(HeldOutClasses(SizesOf(2)).empty());
}

TEST(DemoPlan, BudgetsKeepThePromisedTime) {
  for (const bool quick : {true, false}) {
    const DemoBudget budget = MakeDemoPlan(quick).budget;
    EXPECT_LE(budget.record_s + budget.sweep_s + budget.train_s + budget.compare_s + budget.whole_s,
              quick ? 110 : 570);
  }
}

TEST(DemoPlan, EvaluatedShapeWasNotTrainedOn) {
  for (const bool quick : {true, false}) {
    const DemoPlan plan = MakeDemoPlan(quick);
    for (const TrainingShape& shape : plan.training_shapes) {
      EXPECT_NE(shape.hidden, plan.held_out_shape.hidden);
      EXPECT_NE(shape.bucket_bytes, plan.held_out_shape.bucket_bytes);
      EXPECT_NE(shape.seed, plan.held_out_shape.seed);
    }
    EXPECT_NE(plan.held_out_topology, plan.topology);
    EXPECT_THAT(plan.other_topologies, ::testing::Not(Contains(plan.held_out_topology)));
  }
}

TEST(TrainedSteps, ReadsStepsAndTheHashAtTheEnd) {
  const std::string path = ::testing::TempDir() + "steps.jsonl";
  std::ofstream(path) << "{\"step\":0,\"loss\":5.5,\"loss_hex\":\"0x1.6p+2\",\"step_ms\":70.5}\n"
                         "{\"final\":true,\"parameters_sha256\":\"ab\",\"stage\":2}\n";
  const auto steps = ReadTrainedSteps(path);
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(steps->loss_bits, std::vector<std::string>{"0x1.6p+2"});
  EXPECT_DOUBLE_EQ(steps->step_ms.at(0), 70.5);
  EXPECT_EQ(steps->parameters_sha256, "ab");
}

TEST(TrainedSteps, DamageIsAnErrorWithThePath) {
  const std::string path = ::testing::TempDir() + "damaged.jsonl";
  for (const char* text : {"", "{", "{\"step\":0,\"loss\":\"x\"}"}) {
    std::ofstream(path) << text;
    const auto steps = ReadTrainedSteps(path);
    ASSERT_FALSE(steps.has_value()) << text;
    EXPECT_THAT(steps.error().message, HasSubstr(path));
  }
}

TEST(Findings, SayWhatAWholeRunGainedBesideItsNoise) {
  DemoResult result;
  result.whole_runs = {
      {"slow rail", "default", 400, 20, 20, {}},         {"slow rail", "adaptive", 400, 15, 12, {}},
      {"slow rail", "adaptive again", 400, 12, 12, {}},  {"slow rail", "one channel", 400, 11, 11, {}},
      {"slow rail", "default again", 400, 20.4, 20, {}}, {"healthy", "default", 400, 10, 10, {}}};
  const std::vector<std::string> findings = FindingsOf(result);
  EXPECT_THAT(findings,
              Contains(HasSubstr("-25.0 % over the whole run and -40.0 % in its last fifth; with what that "
                                 "run had left, -40.0 % from the first step on; with one channel for "
                                 "all calls, -45.0 %. Default against default: +2.0 %")));
  EXPECT_THAT(findings, ::testing::Not(Contains(HasSubstr("healthy")))) << "four of its runs are missing";
}

TEST(Findings, SayWhereNothingCouldBeWon) {
  DemoResult result;
  const Timing same{80, 75, 85, 20};
  result.step_times = {{1, kDefaultArm, same, {}},
                       {1, kOurArm, same, {}, 1.01, 0.98, 1.03},
                       {1, kBestArm, same, {}, 0.97, 0.93, 1.01}};
  EXPECT_THAT(FindingsOf(result), Contains(HasSubstr("Nothing could be won here")));
  result.step_times[2].high = 0.99;
  EXPECT_THAT(FindingsOf(result), Contains(HasSubstr("-3.0 % (-7.0 to -1.0) with the best of the sweep.")));
  EXPECT_THAT(FindingsOf(result), ::testing::Not(Contains(HasSubstr("Nothing could be won here"))));
  result.step_times[2].low = result.step_times[2].high = 0;
  EXPECT_THAT(FindingsOf(result), Contains(HasSubstr("too few rounds to be sure")));
}

TEST(Findings, SayALossAsPlainlyAsAWin) {
  DemoResult result;
  ChoiceRow row{
      .stage = 0, .default_us = {100, 99, 101, 9}, .our_us = {130, 129, 131, 9}, .best_us = {90, 89, 91, 9}};
  result.choices = {row};
  EXPECT_THAT(FindingsOf(result), Contains(HasSubstr("faster than the default in 0, slower in 1")));
}

TEST(Findings, UnequalLossesAreShouted) {
  DemoResult result;
  result.losses = {{.bitwise_equal = false, .largest_relative_difference = 0.1, .tolerance = 1e-4}};
  EXPECT_THAT(FindingsOf(result), Contains(HasSubstr("ARE NOT EQUAL")));
}

}  // namespace
}  // namespace dynamiccl
