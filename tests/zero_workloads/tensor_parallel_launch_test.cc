// SPDX-License-Identifier: Apache-2.0
// Tests tensor parallelism as a user meets it: what is refused, what is reported, and what happens when a
// rank dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tests/zero_workloads/checkpoint_runs.h"

namespace dynamiccl::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kUsage = 2, kJobFailed = 4;

void ExpectRefused(const Arguments& options, const std::string& message, const std::string& hint) {
  Arguments arguments = {"train", "--data", DYNAMICCL_TEST_TEXT};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const RankOutcome rank = RunRanks({.ranks = 1, .arguments = arguments})[0];
  EXPECT_EQ(rank.exit_code, kUsage) << rank.output;
  EXPECT_THAT(rank.output, AllOf(HasSubstr(message), HasSubstr(hint)));
}

TEST(TensorParallelInput, WhatCannotBeDividedIsRefused) {
  ExpectRefused({"--tensor-parallel", "2"}, "--tensor-parallel 2 does not divide 1 rank(s)", "start 2 ranks");
  ExpectRefused({"--tensor-parallel", "0"}, "--tensor-parallel 0 is out of range", "at least 1");
  ExpectRefused({"--tensor-parallel", "4", "--heads", "2"}, "--tensor-parallel 4 does not divide --heads 2",
                "attention heads");
  ExpectRefused({"--tensor-parallel", "3", "--heads", "3", "--hidden", "96"},
                "--tensor-parallel 3 does not divide the vocabulary of 256", "power of two");
  ExpectRefused({"--sequence-parallel"}, "--sequence-parallel without tensor parallelism",
                "add --tensor-parallel");
  ExpectRefused({"--tensor-parallel", "2", "--sequence-parallel", "--sequence", "33"},
                "--tensor-parallel 2 does not divide --sequence 33", "positions");
  ExpectRefused({"--tensor-parallel", "2", "--sequence-parallel", "--activation-checkpoints", "partitioned"},
                "--activation-checkpoints partitioned with --sequence-parallel", "full keeps the slices");
}

TEST(TensorParallelInput, BatchIsDividedAmongDataRanksOnly) {
  // Four ranks are two data ranks, so 12 sequences can be divided but 13 cannot.
  Launch launch{.ranks = 4, .arguments = SmallModel()};
  std::replace(launch.arguments.begin(), launch.arguments.end(), std::string("12"), std::string("13"));
  launch.arguments.insert(launch.arguments.end(), {"--tensor-parallel", "2"});
  for (const RankOutcome& rank : RunRanks(launch)) {
    EXPECT_EQ(rank.exit_code, kUsage);
    EXPECT_THAT(rank.output, HasSubstr("--batch 13 sequences cannot be divided among 2 data ranks evenly"));
  }
}

TEST(TensorParallelRun, EvaluationAndReportAreThoseOfOneRank) {
  const Arguments evaluated = {"--stage", "2", "--steps", "10", "--eval-at-end"};
  const TrainingReport one = TrainSmall(1, evaluated);
  for (const bool sequence_parallel : {false, true}) {
    Arguments arguments = evaluated;
    arguments.insert(arguments.end(), {"--tensor-parallel", "2"});
    if (sequence_parallel) arguments.push_back("--sequence-parallel");
    const TrainingReport grid = TrainSmall(4, arguments);
    ASSERT_EQ(grid.losses.size(), 10u);
    for (size_t step = 0; step < 10; ++step) {
      EXPECT_NEAR(std::stod(grid.losses[step]), std::stod(one.losses[step]), 2e-5) << "step " << step;
    }
    EXPECT_NEAR(grid.held_out_bits_per_byte, one.held_out_bits_per_byte, 2e-5);
  }
}

TEST(TensorParallelRun, ActivationCheckpointsChangeNothing) {
  for (const bool sequence_parallel : {false, true}) {
    Arguments run = {"--tensor-parallel", "2", "--stage", "3", "--steps", "5"};
    if (sequence_parallel) run.push_back("--sequence-parallel");
    const TrainingReport none = TrainSmall(4, run);
    ASSERT_EQ(none.losses.size(), 5u);
    for (const char* kept : {"full", "partitioned", "partitioned_cpu"}) {
      if (sequence_parallel && std::string(kept) == "partitioned") continue;
      for (const Arguments& pools : {Arguments{}, Arguments{"--contiguous-pools"}}) {
        ExpectContinues(none, TrainSmall(4, run + Arguments{"--activation-checkpoints", kept} + pools), kept);
      }
    }
  }
}

TEST(TensorParallelRun, AnyGridGoesOnFromACheckpointOfAnother) {
  const TemporaryFolder place;
  const std::filesystem::path folder = place / "checkpoints";
  const Arguments split = {"--tensor-parallel", "2", "--sequence-parallel"};
  const TrainingReport whole = TrainSmall(4, Saving(folder) + split + Arguments{"--stage", "2"});
  ASSERT_EQ(whole.losses.size(), 8u);
  ExpectContinues(whole, TrainSmall(4, Saving(folder) + split + Arguments{"--stage", "3", "--resume", "4"}),
                  "the same grid, another stage");
  const TrainingReport one = TrainSmall(1, Saving(folder) + Arguments{"--resume", "4"});
  const TrainingReport back =
      TrainSmall(2, Saving(folder) + Arguments{"--tensor-parallel", "2", "--stage", "1", "--resume", "6"});
  ASSERT_EQ(one.losses.size(), 4u);
  ASSERT_EQ(back.losses.size(), 2u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(std::stod(one.losses[i]), std::stod(whole.losses[i + 4]), 1e-5) << "step " << i + 4;
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(std::stod(back.losses[i]), std::stod(whole.losses[i + 6]), 1e-5) << "step " << i + 6;
  }
}

TEST(TensorParallelRun, CheckpointsDoNotTellTheirGrid) {
  const TemporaryFolder place;
  // With a learning rate of 0, the weights stay those of the seed.
  const Arguments run = {"--steps", "1", "--learning-rate", "0", "--checkpoint-dir"};
  TrainSmall(1, run + Arguments{(place / "one").string()});
  TrainSmall(4, run + Arguments{(place / "grid").string(), "--tensor-parallel", "2", "--stage", "3"});
  EXPECT_EQ(Exported(place / "one", 1), Exported(place / "grid", 1));
}

TEST(TensorParallelRun, RanksOfAllGroupsEndWhenOneDies) {
  const TemporaryFolder folder;
  const std::string json = (folder / "report.json").string();
  Launch launch{.ranks = 4, .arguments = SmallModel()};
  std::replace(launch.arguments.begin(), launch.arguments.end(), std::string("30"), std::string("1000000"));
  launch.arguments.insert(launch.arguments.end(), {"--tensor-parallel", "2", "--stage", "3", "--json", json});
  launch.environment = {{"HOSTCCL_TIMEOUT_MS", "5000"}};
  RankProcesses ranks(launch);
  // The file's first line shows that training has begun. The launch's time limit bounds this loop.
  while (std::ifstream(json).peek() == std::ifstream::traits_type::eof()) std::this_thread::yield();
  ranks.Kill(3, SIGKILL);
  const std::vector<RankOutcome> outcomes = ranks.Wait();
  for (const size_t survivor : {0, 1, 2}) {
    EXPECT_EQ(outcomes[survivor].exit_code, kJobFailed) << outcomes[survivor].output;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
