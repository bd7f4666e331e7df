// SPDX-License-Identifier: Apache-2.0
// Tests capped memory: a rank must either train the same numbers, or end with a line that states how much was
// free.
#include <gtest/gtest.h>

#include <string>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

TEST(MemoryCap, LeavesTheNumbersAlone) {
  for (const char* stage : {"0", "3"}) {
    const TrainingReport reference = TrainSmall(2, {"--stage", stage});
    const TrainingReport capped = TrainSmall(2, {"--stage", stage, "--memory-cap", "64M"});
    EXPECT_EQ(reference.losses, capped.losses);
    EXPECT_EQ(reference.parameters_sha256, capped.parameters_sha256);
  }
}

// With one sequence per rank, the steps need little memory for activations. The evaluation must not need
// more: whatever can be trained can also be evaluated.
TEST(MemoryCap, EvaluationNeedsNoMoreThanTheSteps) {
  for (const char* stage : {"0", "3"}) {
    const std::vector<std::string> run = {"--stage", stage, "--batch", "2", "--activation-checkpoints",
                                          "full"};
    std::vector<std::string> evaluating = run;
    evaluating.emplace_back("--eval-at-end");
    const TrainingReport evaluated = TrainSmall(2, evaluating);
    EXPECT_LE(evaluated.memory.peak.at("total"), TrainSmall(2, run).memory.peak.at("total")) << stage;
    EXPECT_GT(evaluated.held_out_bits_per_byte, 0.0);
  }
}

// The small model has 137,000 parameters. Stage 0 keeps 16 bytes for each.
TEST(MemoryCap, EndsEveryRankWhereItIsTooLow) {
  std::vector<std::string> arguments = SmallModel();
  arguments.insert(arguments.end(), {"--stage", "0", "--memory-cap", "2M"});
  for (const RankOutcome& rank : RunRanks({2, arguments})) {
    EXPECT_EQ(rank.exit_code, 3) << rank.output;
    EXPECT_NE(rank.output.find("--memory-cap 2.00 MiB, free "), std::string::npos) << rank.output;
    EXPECT_NE(rank.output.find("largest free block "), std::string::npos) << rank.output;
  }
}

// Uses the model of LibTorch's CUDA allocator with checkpoints between short-lived tensors. The free memory
// is then in pieces that are too small. With checkpoints in one piece, the same memory is enough.
TEST(ContiguousPools, PassWhereFragmentationFailsWithThirtyPercentFree) {
  const std::vector<std::string> run = {"train",
                                        "--data",
                                        DYNAMICCL_TEST_TEXT,
                                        "--layers",
                                        "8",
                                        "--hidden",
                                        "32",
                                        "--heads",
                                        "2",
                                        "--sequence",
                                        "128",
                                        "--batch",
                                        "24",
                                        "--steps",
                                        "2",
                                        "--bucket-bytes",
                                        "64K",
                                        "--activation-checkpoints",
                                        "full",
                                        "--memory-allocator",
                                        "caching",
                                        "--memory-cap",
                                        "29M"};
  const RankOutcome scattered = RunRanks({1, run})[0];
  EXPECT_EQ(scattered.exit_code, 3) << scattered.output;
  EXPECT_NE(scattered.output.find("fragmented"), std::string::npos) << scattered.output;
  const size_t share = scattered.output.find(" MiB (");
  ASSERT_NE(share, std::string::npos) << scattered.output;
  EXPECT_GT(std::stoi(scattered.output.substr(share + 6)), 30) << scattered.output;
  std::vector<std::string> pooled = run;
  pooled.emplace_back("--contiguous-pools");
  const RankOutcome contiguous = RunRanks({1, pooled})[0];
  EXPECT_EQ(contiguous.exit_code, 0) << contiguous.output;
}

TEST(MemoryCap, WithoutAUnitIsAnError) {
  std::vector<std::string> arguments = SmallModel();
  arguments.insert(arguments.end(), {"--memory-cap", "64"});
  const RankOutcome rank = RunRanks({1, arguments})[0];
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_NE(rank.output.find("--memory-cap 64M"), std::string::npos) << rank.output;
}

}  // namespace
}  // namespace dynamiccl::zero
