// SPDX-License-Identifier: Apache-2.0
// Tensor and sequence parallelism change which rank computes what, but not the results. The tests compare
// runs on grids of data x tensor ranks with a run on one rank.
#include <ATen/ATen.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "tests/zero_workloads/grid_training.h"

namespace dynamiccl::zero {
namespace {

double RelativeDifference(double value, double expected) {
  return std::abs(value - expected) / std::abs(expected);
}

struct Difference {
  double loss = 0.0;        // relative, largest of all steps
  double norm = 0.0;        // the gradient's; relative, largest of all steps
  double parameters = 0.0;  // |p - p'| / |p| over the whole model
};

Difference Compare(const GridOutcome& outcome, const GridOutcome& reference) {
  Difference difference;
  EXPECT_EQ(outcome.losses.size(), reference.losses.size());
  for (size_t step = 0; step < outcome.losses.size(); ++step) {
    difference.loss =
        std::max(difference.loss, RelativeDifference(outcome.losses[step], reference.losses[step]));
    difference.norm = std::max(
        difference.norm, RelativeDifference(outcome.gradient_norms[step], reference.gradient_norms[step]));
  }
  double square = 0.0, all = 0.0;
  EXPECT_EQ(outcome.parameters.size(), reference.parameters.size());
  for (const auto& [name, value] : reference.parameters) {
    square += (outcome.parameters.at(name) - value).square().sum().item<double>();
    all += value.square().sum().item<double>();
  }
  difference.parameters = std::sqrt(square / all);
  return difference;
}

const GridOutcome& OneRank() {
  static const GridOutcome outcome = TrainOnGrid({});
  return outcome;
}

std::string NameOf(const GridTraining& training) {
  return fmt::format("stage {}, {} data x {} tensor{}", training.stage, training.data, training.tensor,
                     training.sequence_parallel ? ", split sequence" : "");
}

void ExpectWholeParametersEqual(const GridOutcome& outcome) {
  for (size_t step = 0; step < outcome.whole_parameters.size(); ++step) {
    const auto& ranks = outcome.whole_parameters[step];
    EXPECT_EQ(std::set<std::string>(ranks.begin(), ranks.end()).size(), 1u) << "step " << step;
  }
}

// Runs all stages on one grid. Each must be close to the run on one rank, and all must agree bit for bit.
void ExpectGridTrainsAsOneRank(int data, int tensor, bool sequence_parallel, int shard_group = 0) {
  Difference largest;
  GridOutcome first_stage;
  const int first = shard_group == 0 ? 0 : 1;
  for (int stage = first; stage < 4; ++stage) {
    const GridTraining training{.data = data,
                                .tensor = tensor,
                                .sequence_parallel = sequence_parallel,
                                .stage = stage,
                                .shard_group = shard_group};
    SCOPED_TRACE(NameOf(training));
    const GridOutcome outcome = TrainOnGrid(training);
    ASSERT_EQ(outcome.losses.size(), 30u);
    ExpectWholeParametersEqual(outcome);
    EXPECT_EQ(outcome.first_digest, OneRank().first_digest);
    EXPECT_LT(outcome.losses.back(), outcome.losses.front() - 1.0f);
    const Difference difference = Compare(outcome, OneRank());
    EXPECT_LE(difference.loss, 1e-5);
    EXPECT_LE(difference.parameters, 1e-5);
    largest.loss = std::max(largest.loss, difference.loss);
    largest.norm = std::max(largest.norm, difference.norm);
    largest.parameters = std::max(largest.parameters, difference.parameters);
    if (stage == first) first_stage = outcome;
    EXPECT_EQ(outcome.losses, first_stage.losses);
    EXPECT_EQ(outcome.last_digest, first_stage.last_digest);
  }
  fmt::print(
      "{} data x {} tensor{}: relative differences from one rank at most: loss {:.2e}, norm {:.2e}, "
      "parameters {:.2e}\n",
      data, tensor, sequence_parallel ? ", split sequence" : "", largest.loss, largest.norm,
      largest.parameters);
}

// With three or more ranks, the stages agree bit for bit only if sums are added in the order of ranks.
// hostccl reads the variable when it makes a communicator.
class GridTrainingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("HOSTCCL_SUM", "rank_order", 1); }
  static void TearDownTestSuite() { unsetenv("HOSTCCL_SUM"); }
};

TEST_F(GridTrainingTest, TwoTensorRanks) {
  for (const int data : {1, 2}) {
    for (const bool sequence_parallel : {false, true}) ExpectGridTrainsAsOneRank(data, 2, sequence_parallel);
  }
}

TEST_F(GridTrainingTest, FourTensorRanks) {
  for (const int data : {1, 2}) {
    for (const bool sequence_parallel : {false, true}) ExpectGridTrainsAsOneRank(data, 4, sequence_parallel);
  }
}

TEST_F(GridTrainingTest, OneTensorRank) {
  for (const int data : {1, 2}) ExpectGridTrainsAsOneRank(data, 1, false);
}

TEST_F(GridTrainingTest, ReplicasOfShardGroups) {
  for (const bool sequence_parallel : {false, true}) ExpectGridTrainsAsOneRank(4, 2, sequence_parallel, 2);
  ExpectGridTrainsAsOneRank(2, 2, true, 1);
}

TEST_F(GridTrainingTest, AccumulationOnAGrid) {
  const GridOutcome one = TrainOnGrid({.steps = 8, .micro_steps = 2});
  for (const int stage : {1, 3}) {
    const GridTraining training{
        .data = 2, .tensor = 2, .sequence_parallel = true, .stage = stage, .steps = 8, .micro_steps = 2};
    SCOPED_TRACE(NameOf(training));
    const GridOutcome outcome = TrainOnGrid(training);
    ExpectWholeParametersEqual(outcome);
    EXPECT_LE(Compare(outcome, one).loss, 1e-5);
  }
}

TEST_F(GridTrainingTest, NormIsThatOfOneRankInFp64) {
  const double expected = FirstGradientNorm();
  for (const auto& [data, tensor] : {std::pair{1, 1}, {1, 2}, {2, 2}, {1, 4}, {2, 4}}) {
    for (const bool sequence_parallel : {false, true}) {
      if (tensor == 1 && sequence_parallel) continue;
      for (const int stage : {0, 3}) {
        const GridTraining training{.data = data,
                                    .tensor = tensor,
                                    .sequence_parallel = sequence_parallel,
                                    .stage = stage,
                                    .steps = 1};
        const double norm = TrainOnGrid(training).gradient_norms[0];
        EXPECT_LE(RelativeDifference(norm, expected), 1e-6) << NameOf(training);
      }
    }
  }
}

// Only the runs with several tensor ranks round sums to a mantissa of 8 bits.
TEST_F(GridTrainingTest, Bf16) {
  const GridOutcome one = TrainOnGrid({.type = at::kBFloat16});
  for (const bool sequence_parallel : {false, true}) {
    GridOutcome first_stage;
    for (const int stage : {0, 3}) {
      const GridTraining training{.data = 2,
                                  .tensor = 2,
                                  .sequence_parallel = sequence_parallel,
                                  .stage = stage,
                                  .type = at::kBFloat16};
      SCOPED_TRACE(NameOf(training));
      const GridOutcome outcome = TrainOnGrid(training);
      ExpectWholeParametersEqual(outcome);
      const Difference difference = Compare(outcome, one);
      fmt::print("bf16, {}: loss differs by {:.2e}\n", NameOf(training), difference.loss);
      EXPECT_LE(difference.loss, 1e-2);
      if (stage == 0) first_stage = outcome;
      EXPECT_EQ(outcome.last_digest, first_stage.last_digest);
    }
  }
}

}  // namespace
}  // namespace dynamiccl::zero
