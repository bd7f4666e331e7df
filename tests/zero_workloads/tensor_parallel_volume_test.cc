// SPDX-License-Identifier: Apache-2.0
// Compares what a grid of data x tensor ranks sends on each communicator with the formulas of
// docs/zero_memory.md.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/counted_traffic.h"

namespace dynamiccl::zero {
namespace {

// The small model, with as many heads as the largest tensor degree in these tests.
constexpr long kBlocks = 2, kHidden = 64, kSequence = 32, kVocabulary = 256, kBatch = 12, kSteps = 3;
// Loss and norm are summed over all ranks once per step.
constexpr long kScalars = 2;

struct GridShape {
  long data;
  long tensor;
};

std::vector<TrafficByFunction> CountOnGrid(const GridShape& grid, int stage, bool sequence_parallel,
                                           const std::string& checkpoints = "none") {
  std::vector<std::string> arguments = {"--stage",
                                        std::to_string(stage),
                                        "--steps",
                                        std::to_string(kSteps),
                                        "--heads",
                                        "4",
                                        "--tensor-parallel",
                                        std::to_string(grid.tensor),
                                        "--activation-checkpoints",
                                        checkpoints};
  if (sequence_parallel) arguments.push_back("--sequence-parallel");
  return CountTraffic(static_cast<int>(grid.data * grid.tensor), arguments);
}

// Tokens of a data rank's batch.
long Tokens(const GridShape& grid) {
  return kBatch / grid.data * kSequence;
}

long Activation(const GridShape& grid) {
  return Tokens(grid) * kHidden;
}

// Returns the elements of a unit's flat parameters on one tensor rank. Each parameter starts at a multiple of
// 32, and each shard is a multiple of 128.
long Unit(const GridShape& grid, const std::vector<long>& parameters) {
  long elements = 0;
  for (const long parameter : parameters) elements += (parameter + 31) / 32 * 32;
  const long multiple = 128 * grid.data;
  return (elements + multiple - 1) / multiple * multiple;
}

long Psi(const GridShape& grid) {
  const long h = kHidden, t = grid.tensor;
  const long block = Unit(
      grid, {h, h, 3 * h * h / t, 3 * h / t, h * h / t, h, h, h, 4 * h * h / t, 4 * h / t, 4 * h * h / t, h});
  const long root =
      Unit(grid, {kVocabulary * h / t, kSequence * h, h, h, kVocabulary * h / t, kVocabulary / t});
  return root + kBlocks * block;
}

// Elements that every tensor rank holds: norms, biases of row-parallel layers, and positions.
constexpr long kWholeParameters = (6 * kBlocks + 2 + kSequence) * kHidden;

TEST(TensorParallelVolume, FourAllReducesABlock) {
  for (const GridShape& grid : {GridShape{1, 2}, {2, 2}, {1, 4}}) {
    for (const int stage : {0, 3}) {
      for (TrafficByFunction traffic : CountOnGrid(grid, stage, false)) {
        SCOPED_TRACE(fmt::format("{} x {}, stage {}", grid.data, grid.tensor, stage));
        // Each block sums four times, and the embedding and the head once each. The loss needs two more
        // calls: the largest logits, and two sums in one call.
        const Traffic sums = traffic["AllReduce.2"];
        EXPECT_EQ(sums.calls, kSteps * (4 * kBlocks + 2 + 2));
        EXPECT_EQ(sums.elements, kSteps * ((4 * kBlocks + 2) * Activation(grid) + 3 * Tokens(grid)));
        EXPECT_EQ(traffic["ReduceScatter.2"].calls, 0);
        // These are the gathers of the digest.
        EXPECT_EQ(traffic["AllGather.2"].calls, kBlocks + 1);
        EXPECT_EQ(traffic["AllGather.2"].elements, grid.tensor * Psi(grid));
        EXPECT_EQ(traffic["AllReduce"].calls, kSteps);
        EXPECT_EQ(traffic["AllReduce"].elements, kSteps * kScalars);
      }
    }
  }
}

TEST(TensorParallelVolume, SequenceParallelismScattersAndGathers) {
  for (const GridShape& grid : {GridShape{1, 2}, {2, 2}, {1, 4}}) {
    long whole_parameters = 0;
    for (TrafficByFunction traffic : CountOnGrid(grid, 2, true)) {
      SCOPED_TRACE(fmt::format("{} x {}", grid.data, grid.tensor));
      const Traffic scatters = traffic["ReduceScatter.2"], gathers = traffic["AllGather.2"];
      EXPECT_EQ(scatters.calls, kSteps * (4 * kBlocks + 2));
      EXPECT_EQ(scatters.elements, kSteps * (4 * kBlocks + 2) * Activation(grid));
      // Each block gathers twice in the forward pass and four times in the backward pass. The head's input is
      // gathered twice, and the embedding's gradient once.
      EXPECT_EQ(gathers.calls, kSteps * (6 * kBlocks + 3) + kBlocks + 1);
      EXPECT_EQ(gathers.elements, kSteps * (6 * kBlocks + 3) * Activation(grid) + grid.tensor * Psi(grid));
      EXPECT_EQ(traffic["AllReduce.2"].calls, kSteps * 3);
      whole_parameters += traffic["AllReduce.2"].elements - kSteps * 3 * Tokens(grid);
      EXPECT_EQ(traffic["AllReduce"].elements, kSteps * kScalars);
    }
    // Each data rank sums the whole parameters of its shard, on all its tensor ranks.
    EXPECT_EQ(whole_parameters, kSteps * grid.tensor * kWholeParameters);
  }
}

TEST(TensorParallelVolume, DividedCheckpointsGatherOneActivationABlock) {
  const GridShape grid{1, 4};
  for (TrafficByFunction traffic : CountOnGrid(grid, 1, false, "partitioned")) {
    const Traffic sums = traffic["AllReduce.2"], gathers = traffic["AllGather.2"];
    // The blocks' forward sums are made once more in the recomputation.
    EXPECT_EQ(sums.elements, kSteps * ((6 * kBlocks + 2) * Activation(grid) + 3 * Tokens(grid)));
    EXPECT_EQ(gathers.calls, kSteps * kBlocks + kBlocks + 1);
    const long partitioned = gathers.elements - grid.tensor * Psi(grid);
    EXPECT_EQ(partitioned, kSteps * kBlocks * Activation(grid));
    // This is less than a tenth of what tensor parallelism moves, if an AllReduce counts twice (section 8 of
    // the ZeRO paper).
    EXPECT_LT(10 * partitioned, 2 * sums.elements);
  }
}

TEST(TensorParallelVolume, ZeroMovesTheOwnSlicesAmongDataRanks) {
  for (const GridShape& grid : {GridShape{2, 2}, {3, 2}}) {
    for (TrafficByFunction traffic : CountOnGrid(grid, 1, true)) {
      EXPECT_EQ(traffic["ReduceScatter.1"].elements, kSteps * Psi(grid));
      EXPECT_EQ(traffic["AllGather.1"].elements, (kSteps + 1) * Psi(grid));
      EXPECT_EQ(traffic["AllReduce.1"].calls, 0);
    }
  }
}

}  // namespace
}  // namespace dynamiccl::zero
