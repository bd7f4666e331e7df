// SPDX-License-Identifier: Apache-2.0
// Tests activation checkpoints and contiguous pools in whole runs. They change where activations are stored,
// but neither the numbers nor the communication.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

Arguments Joined(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Runs the small model on one rank. Options in `more` replace those of the model.
RankOutcome RunOnce(const Arguments& more) {
  Arguments arguments = SmallModel();
  for (const std::string& word : more) {
    const auto old = std::find(arguments.begin(), arguments.end(), word);
    if (old != arguments.end() && word.starts_with("--")) arguments.erase(old, old + 2);
  }
  return RunRanks({1, Joined(arguments, more)})[0];
}

// Requires that the runs with all these arguments give the results of the first.
void ExpectSame(const std::vector<Arguments>& runs) {
  const TrainingReport reference = TrainSmall(2, runs[0]);
  for (size_t i = 1; i < runs.size(); ++i) {
    const TrainingReport report = TrainSmall(2, runs[i]);
    std::string what;
    for (const std::string& word : runs[i]) what += word + " ";
    EXPECT_EQ(reference.losses, report.losses) << what;
    EXPECT_EQ(reference.parameters_sha256, report.parameters_sha256) << what;
  }
}

const Arguments kFull = {"--activation-checkpoints", "full"};
const Arguments kOnHost = {"--activation-checkpoints", "partitioned_cpu"};
const Arguments kPools = {"--contiguous-pools"};

TEST(ActivationCheckpoints, LeaveTheNumbersAloneInEveryStage) {
  ExpectSame({{"--stage", "0"},
              Joined({"--stage", "0"}, kFull),
              Joined({"--stage", "1"}, kFull),
              Joined({"--stage", "2"}, kFull),
              Joined({"--stage", "3"}, kFull),
              Joined(Joined({"--stage", "3"}, kFull), {"--no-prefetch", "--no-overlap"}),
              Joined(Joined({"--stage", "3"}, kFull), {"--eval-every", "7"}),
              Joined({"--stage", "2"}, kOnHost)});
}

TEST(ActivationCheckpoints, LeaveTheNumbersAloneWithMicroStepsAndBf16) {
  ExpectSame({{"--stage", "3", "--micro-steps", "2", "--dtype", "bf16"},
              Joined({"--stage", "3", "--micro-steps", "2", "--dtype", "bf16"}, kFull),
              Joined({"--stage", "2", "--micro-steps", "2", "--dtype", "bf16"}, kOnHost)});
}

TEST(ContiguousPools, LeaveTheNumbersAlone) {
  ExpectSame({{"--stage", "1"},
              Joined({"--stage", "1"}, kPools),
              Joined(Joined({"--stage", "1"}, kPools), kFull),
              Joined(Joined({"--stage", "3"}, kPools), kOnHost)});
  ExpectSame({{"--stage", "0", "--micro-steps", "2"},
              Joined({"--stage", "0", "--micro-steps", "2"}, kPools),
              Joined(Joined({"--stage", "1", "--micro-steps", "2"}, kPools), kFull)});
}

// Each rank of a tensor group must keep exactly its part of the checkpoints. The numbers must not change.
TEST(PartitionedCheckpoints, LeaveTheNumbersAloneAndKeepOneTthOfTheBytes) {
  for (const int degree : {2, 4}) {
    const auto on_grid = [degree](const Arguments& more) {
      return TrainSmall(degree, Joined({"--heads", "4", "--steps", "10", "--stage", "1", "--tensor-parallel",
                                        std::to_string(degree)},
                                       more));
    };
    const TrainingReport none = on_grid({}), full = on_grid(kFull);
    const TrainingReport divided = on_grid({"--activation-checkpoints", "partitioned"});
    const TrainingReport pooled = on_grid({"--paper-config", "C2"});
    const TrainingReport on_host = on_grid(kOnHost);
    const TrainingReport late =
        on_grid({"--activation-checkpoints", "partitioned", "--no-activation-prefetch"});
    const TrainingReport host_late = on_grid(Joined(kOnHost, {"--no-activation-prefetch"}));
    for (const TrainingReport* report : {&full, &divided, &pooled, &on_host, &late, &host_late}) {
      EXPECT_EQ(none.losses, report->losses) << "tensor degree " << degree;
      EXPECT_EQ(none.parameters_sha256, report->parameters_sha256) << "tensor degree " << degree;
    }
    // 12 sequences of 32 positions, hidden size 64, 2 blocks, fp32.
    constexpr int64_t kWhole = 12 * 32 * 64 * 2 * 4;
    EXPECT_EQ(full.memory.peak.at("checkpoints"), kWhole);
    EXPECT_EQ(divided.memory.peak.at("checkpoints"), kWhole / degree);
    EXPECT_EQ(on_host.memory.peak.at("checkpoints"), 0);
  }
}

// Returns the calls of one rank in order, each as "<function> <elements>".
Arguments Sequence(const Arguments& arguments) {
  const TemporaryFolder folder;
  TrainSmall(2, Joined(arguments, {"--steps", "2"}), {{"COUNT_NCCL_SEQUENCE", (folder / "calls").string()}},
             COUNT_NCCL_LIBRARY);
  Arguments calls;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    std::ifstream file(entry.path());
    Arguments of_process;
    for (std::string line; std::getline(file, line);) of_process.push_back(line);
    if (!of_process.empty()) calls = of_process;
  }
  return calls;
}

// A unit is gathered once, before it is computed again. Its parameters stay in memory through its backward
// pass.
TEST(ActivationCheckpoints, CallTheSameCollectivesInTheSameOrder) {
  const Arguments without = Sequence({"--stage", "3"});
  ASSERT_FALSE(without.empty());
  EXPECT_EQ(Sequence(Joined({"--stage", "3"}, kFull)), without);
}

// Returns the indices of the calls that gather inputs of blocks: 12 sequences of 32 positions and hidden size
// 64.
std::vector<size_t> InputGathers(const Arguments& calls) {
  std::vector<size_t> places;
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i].starts_with("AllGather") && calls[i].ends_with(" 24576")) places.push_back(i);
  return places;
}

// Runs two steps of four blocks. With prefetch, the input of the preceding block is gathered right after the
// block's own input, before the block is computed again. All other calls stay the same.
TEST(PartitionedCheckpoints, AreGatheredOneBlockEarly) {
  const Arguments run = {"--layers",   "4", "--tensor-parallel", "2", "--activation-checkpoints",
                         "partitioned"};
  Arguments early = Sequence(run), late = Sequence(Joined(run, {"--no-activation-prefetch"}));
  const std::vector<size_t> ahead = InputGathers(early), behind = InputGathers(late);
  ASSERT_EQ(ahead.size(), 8u);
  ASSERT_EQ(behind.size(), 8u);
  for (size_t step = 0; step < 8; step += 4) {
    EXPECT_EQ(ahead[step], behind[step]);
    EXPECT_EQ(ahead[step + 1], ahead[step] + 1);
    for (size_t i = 1; i < 4; ++i) {
      EXPECT_GT(behind[step + i], behind[step + i - 1] + 1);
      // With prefetch, the gather comes before the calls of one block.
      EXPECT_EQ(ahead[step + i], behind[step + i - 1] + 1);
    }
  }
  std::sort(early.begin(), early.end());
  std::sort(late.begin(), late.end());
  EXPECT_EQ(early, late);
}

std::vector<int64_t> AllocationsOfSteps(const Arguments& more) {
  const TemporaryFolder folder;
  const std::string json = (folder / "report.json").string();
  const RankOutcome rank = RunOnce(Joined(more, {"--json", json, "--memory-cap", "256M"}));
  EXPECT_EQ(rank.exit_code, 0) << rank.output;
  std::vector<int64_t> allocations;
  int64_t before = 0;
  std::ifstream file(json);
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text);
    if (!line.contains("memory_cap")) continue;
    const int64_t now = line["memory_cap"]["allocations"];
    allocations.push_back(now - before);
    before = now;
  }
  return allocations;
}

TEST(ContiguousPools, AllocateAsOftenInEachStepAfterTheSecond) {
  for (const char* stage : {"1", "3"}) {
    const auto pooled = AllocationsOfSteps(Joined(Joined({"--stage", stage, "--steps", "8"}, kFull), kPools));
    ASSERT_EQ(pooled.size(), 8u);
    for (size_t step = 2; step < pooled.size(); ++step) EXPECT_EQ(pooled[step], pooled[2]) << "step " << step;
  }
}

TEST(PaperConfigurations, SetTheStageCheckpointsAndPools) {
  ExpectSame({{"--paper-config", "C1"}, Joined(Joined({"--stage", "1"}, kFull), kPools)});
  const RankOutcome same = RunOnce({"--paper-config", "C3", "--stage", "2", "--steps", "1"});
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("stage 2"));
}

TEST(PaperConfigurations, AContradictionIsAnError) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--paper-config", "C4", "--stage", "1"}, "--stage 1 contradicts it"},
      {{"--paper-config", "C5", "--activation-checkpoints", "none"},
       "--activation-checkpoints none contradicts it"},
      {{"--paper-config", "C1", "--no-contiguous-pools"}, "--no-contiguous-pools contradicts it"},
      {{"--paper-config", "C1", "--bucket-bytes", "all"}, "--bucket-bytes all contradicts it"},
      {{"--paper-config", "C6"}, "C1, C2, C3, C4 or C5"},
      {{"--paper-config", "C2"}, "--tensor-parallel"},
      {{"--activation-checkpoints", "partitioned"}, "--tensor-parallel"},
      {{"--activation-checkpoints", "some"}, "none, full, partitioned, partitioned_cpu or auto"},
      {{"--activation-checkpoints", "auto"}, "--memory-cap"},
  };
  for (const auto& [arguments, expected] : cases) {
    const RankOutcome rank = RunOnce(arguments);
    EXPECT_EQ(rank.exit_code, 2) << rank.output;
    EXPECT_THAT(rank.output, HasSubstr(expected));
  }
}

TEST(AutomaticCheckpoints, FollowTheMemoryThereIsAndSayWhy) {
  const Arguments large = {"--layers", "6", "--batch", "48", "--steps", "2", "--activation-checkpoints",
                           "auto"};
  const auto run = [&](const char* cap) {
    const RankOutcome rank = RunOnce(Joined(large, {"--memory-cap", cap}));
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
    return rank.output;
  };
  EXPECT_THAT(run("256M"), HasSubstr("activation checkpoints: none, "));
  EXPECT_THAT(run("48M"), HasSubstr("activation checkpoints: full, "));
}

TEST(OneBucketForAll, GivesTheSameNumbers) {
  ExpectSame({{"--stage", "2"},
              {"--stage", "2", "--bucket-bytes", "all"},
              {"--stage", "0", "--bucket-bytes", "all"}});
}

}  // namespace
}  // namespace dynamiccl::zero
