// SPDX-License-Identifier: Apache-2.0
// Tests the choice to keep, recompute, divide or move activations, just above and just below each limit of
// memory and of bandwidth.
#include "zero_workloads/zero_r/checkpoint_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

constexpr Checkpoints kAll[] = {Checkpoints::kNone, Checkpoints::kEveryBlock, Checkpoints::kPartitioned,
                                Checkpoints::kPartitionedCpu};

// The paper's 60B model of Table 5 with 16-way tensor parallelism on V100s: 100 Tflop/s, NVLink inside a node
// (150 GB/s), one link of 12.5 GB/s between nodes, and PCIe to the host.
CheckpointQuestion Question(int64_t tensor_parallel = 16) {
  CheckpointQuestion question;
  question.run.shape = TransformerShape{.layers = 75, .hidden = 8192};
  question.run.ranks = 25;
  question.run.tensor_parallel = tensor_parallel;
  question.run.batch = 8;
  question.stage = 2;
  question.hardware = {.memory_bytes = 32e9,
                       .flops = 100e12,
                       .tensor_bandwidth = 150e9,
                       .data_bandwidth = 12.5e9,
                       .host_bandwidth = 12e9};
  return question;
}

CheckpointChoice ChoiceAt(CheckpointQuestion question, double memory_bytes) {
  question.hardware.memory_bytes = memory_bytes;
  return ChooseCheckpoints(question);
}

TEST(CheckpointChoice, TakesTheCheapestThatFitsOnBothSidesOfEachBorder) {
  // Not 16 ranks: there a block's own activations, divided among the ranks, take less than its whole input.
  const CheckpointQuestion question = Question(4);
  for (size_t i = 0; i < 4; ++i) {
    const double needed = MemoryOf(question, kAll[i], question.run.batch);
    const CheckpointChoice above = ChoiceAt(question, needed);
    EXPECT_EQ(above.checkpoints, kAll[i]);
    EXPECT_TRUE(above.fits);
    const CheckpointChoice below = ChoiceAt(question, needed - 1);
    EXPECT_EQ(below.checkpoints, kAll[std::min<size_t>(i + 1, 3)]);
    EXPECT_EQ(below.fits, i < 3);
  }
  EXPECT_THAT(ChoiceAt(question, 1).reason, HasSubstr("nothing fits"));
}

TEST(CheckpointChoice, DividesOverNothingWithoutTensorParallelism) {
  const CheckpointQuestion question = Question(1);
  const double full = MemoryOf(question, Checkpoints::kEveryBlock, question.run.batch);
  EXPECT_EQ(ChoiceAt(question, full).checkpoints, Checkpoints::kEveryBlock);
  EXPECT_EQ(ChoiceAt(question, full - 1).checkpoints, Checkpoints::kPartitionedCpu);
}

TEST(CheckpointChoice, SaysWhatTheOthersWouldTake) {
  const CheckpointQuestion question = Question();
  const CheckpointChoice choice =
      ChoiceAt(question, MemoryOf(question, Checkpoints::kPartitionedCpu, question.run.batch));
  for (const char* part : {"partitioned_cpu, ", "none would take", "full would take",
                           "partitioned would take", "% of computing"}) {
    EXPECT_THAT(choice.reason, HasSubstr(part));
  }
}

// Section 8: P_a adds one message to the 12 of each block. Its larger batch pays data-parallel communication
// once for more sequences.
TEST(CheckpointChoice, DividesForALargerBatchWhereDataParallelLinksAreSlow) {
  CheckpointQuestion question = Question();
  question.run.batch = 1;
  question.batch_may_grow = true;
  question.hardware.memory_bytes = 1.05 * MemoryOf(question, Checkpoints::kEveryBlock, 4);
  question.hardware.host_bandwidth = 1;  // so slow that the host is never used
  question.hardware.data_bandwidth = 1e9;
  const CheckpointChoice slow = ChooseCheckpoints(question);
  EXPECT_EQ(slow.checkpoints, Checkpoints::kPartitioned);
  EXPECT_GT(slow.batch, 4);
  question.hardware.data_bandwidth = 1e15;
  EXPECT_NE(ChooseCheckpoints(question).checkpoints, Checkpoints::kPartitioned);
}

// "As long as the CPU data transfer overhead is less than the DP communication volume overhead": at the
// limit, both candidates take the same time per sequence.
TEST(CheckpointChoice, MovesToTheHostWhileThatCostsLessThanItSaves) {
  CheckpointQuestion question = Question();
  question.run.batch = 1;
  question.batch_may_grow = true;
  question.hardware.data_bandwidth = 0.2e9;
  question.hardware.memory_bytes = 1.02 * MemoryOf(question, Checkpoints::kPartitioned, 1);
  double slow = 1, fast = 1e15;
  const auto at = [&](double host_bandwidth) {
    question.hardware.host_bandwidth = host_bandwidth;
    return ChooseCheckpoints(question);
  };
  ASSERT_EQ(at(slow).checkpoints, Checkpoints::kPartitioned);
  ASSERT_EQ(at(fast).checkpoints, Checkpoints::kPartitionedCpu);
  ASSERT_GT(at(fast).batch, at(slow).batch);
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(slow * fast);
    (at(middle).checkpoints == Checkpoints::kPartitionedCpu ? fast : slow) = middle;
  }
  const CheckpointChoice moved = at(fast), kept = at(slow);
  const double time_moved = StepTimeOf(question, Checkpoints::kPartitionedCpu, moved.batch).total() /
                            static_cast<double>(moved.batch);
  const double time_kept =
      StepTimeOf(question, Checkpoints::kPartitioned, kept.batch).total() / static_cast<double>(kept.batch);
  EXPECT_NEAR(time_moved / time_kept, 1.0, 1e-6);
}

// Section 4.2.1: at least 10,000 operations per byte for models like GPT-2 and larger, growing linearly with
// the hidden size.
TEST(ArithmeticIntensity, IsAboveTenThousandAndLinearInTheHiddenSize) {
  const TransformerShape gpt2{.layers = 48, .hidden = 1600};
  EXPECT_GE(ArithmeticIntensity(gpt2, 2), 10e3);
  TransformerShape wide = gpt2;
  wide.hidden *= 5;
  EXPECT_DOUBLE_EQ(ArithmeticIntensity(wide, 2), 5 * ArithmeticIntensity(gpt2, 2));
}

// The times of a step give the same intensity: operations divided by the bytes that are kept.
TEST(ArithmeticIntensity, IsWhatTheTimesSay) {
  const CheckpointQuestion question = Question();
  const TransformerShape& shape = *question.run.shape;
  const StepTime time = StepTimeOf(question, Checkpoints::kPartitionedCpu, 3);
  const double operations = time.compute * question.hardware.flops;
  const double bytes = time.host * question.hardware.host_bandwidth / 2;
  // ParametersOf counts embeddings, norms and biases. The 12 hidden^2 of a block do not include them.
  const double matrices = 12.0 * static_cast<double>(shape.layers * shape.hidden * shape.hidden);
  EXPECT_NEAR(operations / bytes * matrices / ParametersOf(shape), ArithmeticIntensity(shape, 2),
              1e-9 * operations / bytes);
}

// Section 8: P_a's gather moves less than a tenth of what tensor parallelism moves.
TEST(PartitionedActivations, MoveLessThanATenthOfTensorParallelism) {
  const CheckpointQuestion question = Question();
  const double full = StepTimeOf(question, Checkpoints::kEveryBlock, 2).tensor;
  const double divided = StepTimeOf(question, Checkpoints::kPartitioned, 2).tensor;
  EXPECT_NEAR((divided - full) / full, 1.0 / 12, 1e-12);
}

}  // namespace
}  // namespace dynamiccl::zero
