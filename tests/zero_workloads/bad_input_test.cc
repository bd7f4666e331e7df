// SPDX-License-Identifier: Apache-2.0
// Tests wrong input by a user. Every run must end soon, with the exit code of its kind of error and a message
// that names the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kUsage = 2, kJobFailed = 4;

void ExpectFailure(const std::vector<std::string>& arguments, int code, const std::string& message) {
  for (const RankOutcome& rank : RunRanks({.ranks = 1, .arguments = arguments})) {
    EXPECT_EQ(rank.exit_code, code) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr(message));
  }
}

std::vector<std::string> SmallModelWith(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = SmallModel();
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BadInput, DataThatIsNotThere) {
  ExpectFailure({"train", "--data", "/no/such/file"}, kUsage, "/no/such/file: no such file");
}

TEST(BadInput, WrongUsageIsAnErrorLikeOthersOnTheFirstRankAlone) {
  ExpectFailure(
      {"train"}, kUsage,
      "error: dynamiccl zero train: --data is required\n  hint: see `dynamiccl zero train --help`\n");
  const std::vector<RankOutcome> ranks = RunRanks({.ranks = 2, .arguments = {"train", "--steps", "many"}});
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_THAT(ranks[0].output, HasSubstr("error: dynamiccl zero train: "));
  EXPECT_EQ(ranks[1].output, "");
}

TEST(BadInput, EmptyDataFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "empty.txt");
  ExpectFailure({"train", "--data", (folder / "empty.txt").string()}, kUsage, "the file is empty");
}

TEST(BadInput, FolderWithoutText) {
  const TemporaryFolder folder;
  ExpectFailure({"train", "--data", (folder / "").string()}, kUsage, "no *.txt file");
}

TEST(BadInput, TextShorterThanASequence) {
  const TemporaryFolder folder;
  std::ofstream(folder / "short.txt") << "To be";
  ExpectFailure({"train", "--data", (folder / "short.txt").string()}, kUsage, "--sequence 128 needs more");
}

TEST(BadInput, OptionValues) {
  ExpectFailure(SmallModelWith({"--stage", "4"}), kUsage, "--stage 4 is out of range: 0 to 3");
  ExpectFailure(SmallModelWith({"--dtype", "fp8"}), kUsage, "--dtype fp8");
  ExpectFailure(SmallModelWith({"--bucket-memory", "pinned"}), kUsage,
                "--bucket-memory pinned: one of ordinary, registered, window");
  ExpectFailure(SmallModelWith({"--bucket-memory", "window", "--memory-cap", "64M"}), kUsage,
                "the cap does not limit it");
  ExpectFailure(SmallModelWith({"--no-master-weights"}), kUsage, "give --dtype bf16 or fp16");
  ExpectFailure(
      SmallModelWith({"--no-master-weights", "--dtype", "bf16", "--offload-optimizer", "nvme:/tmp"}), kUsage,
      "the weights in files are fp32");
  ExpectFailure(SmallModelWith({"--learning-rate", "nan"}), kUsage, "--learning-rate");
  ExpectFailure(SmallModelWith({"--micro-steps", "0"}), kUsage,
                "--micro-steps 0 is out of range: at least 1");
  ExpectFailure(SmallModelWith({"--micro-steps", "-1"}), kUsage, "--micro-steps -1 is out of range");
  ExpectFailure(SmallModelWith({"--micro-steps", "two"}), kUsage, "--micro-steps");
  ExpectFailure(SmallModelWith({"--micro-steps", "1.5"}), kUsage, "--micro-steps");
  ExpectFailure(SmallModelWith({"--no-such-option"}), kUsage, "--no-such-option");
  ExpectFailure(SmallModelWith({"--json", "/no/such/folder/report"}), kUsage, "cannot be written");
  ExpectFailure({"train", "--data", DYNAMICCL_TEST_TEXT, "--batch", "auto", "--memory-cap", "64M",
                 "--contiguous-pools", "--activation-checkpoints", "full"},
                kUsage, "--batch auto with --contiguous-pools");
  ExpectFailure({"train", "--data", DYNAMICCL_TEST_TEXT, "--hidden", "100", "--heads", "3"}, kUsage,
                "--hidden 100 is not a multiple of --heads 3");
}

TEST(BadInput, OptionsThatDoNothing) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"--first-loss-scale", "1024"}, "--first-loss-scale has no effect: the loss scale is fixed"},
      {{"--dtype", "fp16", "--loss-scale", "8", "--loss-scale-growth", "5"},
       "--loss-scale-growth has no effect: the loss scale is fixed"},
      {{"--least-loss-scale", "2"}, "add --loss-scale dynamic"},
      {{"--keep-checkpoints", "2"}, "--keep-checkpoints has no effect: the run has no checkpoints"},
      {{"--accumulation", "local"}, "one micro-step adds up no gradients"},
      {{"--accumulation-type", "model"}, "add --micro-steps 2 or more"},
      {{"--stage", "2", "--micro-steps", "2", "--accumulation-type", "model"}, "sums of shards are in fp32"},
      {{"--offload-buffer-bytes", "64K"}, "no states are offloaded"},
      {{"--memory-allocator", "caching"}, "no memory is capped"},
  };
  for (const auto& [more, message] : cases) ExpectFailure(SmallModelWith(more), kUsage, message);
}

TEST(BadInput, PrefetchWindow) {
  const auto with = [](const char* units, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = SmallModelWith({"--prefetch-units", units});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  ExpectFailure(with("0", {"--stage", "3"}), kUsage, "--prefetch-units 0 is out of range: at least 1");
  ExpectFailure(with("9223372036854775807", {"--stage", "3"}), kUsage, "is out of range: at most 1e+18");
  ExpectFailure(with("two", {"--stage", "3"}), kUsage, "--prefetch-units");
  ExpectFailure(with("2", {"--stage", "2"}), kUsage, "it is for --stage 3");
  ExpectFailure(with("2", {"--stage", "3", "--no-prefetch"}), kUsage,
                "--prefetch-units 2 contradicts --no-prefetch");
}

TEST(BadInput, DiskThatIsFull) {
  ExpectFailure(SmallModelWith({"--json", "/dev/full"}), kJobFailed, "--json /dev/full: lines were lost");
}

TEST(BadInput, VariablesOfTheLauncher) {
  const auto expect = [](const std::map<std::string, std::string>& environment, const std::string& message) {
    const RankOutcome rank = RunRanks({.arguments = SmallModel(), .environment = environment})[0];
    EXPECT_EQ(rank.exit_code, kUsage);
    EXPECT_THAT(rank.output, HasSubstr(message));
  };
  expect({{"RANK", "0"}}, "WORLD_SIZE is not set");
  expect({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}},
         "RANK=\"2\" is not a number from 0 to 1");
  expect({{"RANK", "0"}, {"WORLD_SIZE", "many"}}, "WORLD_SIZE=\"many\"");
  expect({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR is not set");
  expect({{"RANK", "0"}, {"WORLD_SIZE", "5"}, {"MASTER_ADDR", "127.0.0.1"}},
         "--batch 12 sequences cannot be divided");
}

TEST(BadInput, RankThatNeverComes) {
  Launch launch{.arguments = SmallModelWith({"--join-timeout", "1"})};
  launch.environment = {
      {"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29417"}};
  const RankOutcome rank = RunRanks(launch)[0];
  EXPECT_EQ(rank.exit_code, kJobFailed);
  EXPECT_THAT(rank.output, HasSubstr("rank(s) 1, 2 of 3 did not join"));
}

TEST(BadInput, RanksWithOtherHeldOutTexts) {
  Launch launch{.ranks = 2, .arguments = SmallModelWith({"--stage", "3", "--eval-at-end"})};
  // This file contains the process id, so it differs between ranks.
  launch.arguments.insert(launch.arguments.end(), {"--held-out", "/proc/self/stat"});
  for (const RankOutcome& rank : RunRanks(launch)) {
    EXPECT_EQ(rank.exit_code, kUsage) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr("rank 1 was started with other options or another text than rank 0"));
  }
}

TEST(BadInput, RankThatDiesDuringTraining) {
  const TemporaryFolder folder;
  const std::string json = (folder / "report.json").string();
  Launch launch{.ranks = 3, .arguments = SmallModelWith({"--stage", "3", "--json", json})};
  std::replace(launch.arguments.begin(), launch.arguments.end(), std::string("30"), std::string("1000000"));
  launch.environment = {{"HOSTCCL_TIMEOUT_MS", "5000"}};
  RankProcesses ranks(launch);
  // The file's first line shows that training has begun. The launch's time limit bounds this loop.
  while (std::ifstream(json).peek() == std::ifstream::traits_type::eof()) std::this_thread::yield();
  ranks.Kill(1, SIGKILL);
  const std::vector<RankOutcome> outcomes = ranks.Wait();
  EXPECT_EQ(outcomes[1].exit_code, 128 + SIGKILL);
  for (const size_t survivor : {0, 2}) {
    EXPECT_EQ(outcomes[survivor].exit_code, kJobFailed) << outcomes[survivor].output;
    EXPECT_THAT(outcomes[survivor].output,
                AnyOf(HasSubstr("error: ncclAllGather: "), HasSubstr("error: ncclReduceScatter: "),
                      HasSubstr("error: ncclAllReduce: ")));
  }
}

}  // namespace
}  // namespace dynamiccl::zero
