// SPDX-License-Identifier: Apache-2.0
// Kills one rank or all ranks at any point of a save. The restarted run must continue from the newest
// complete checkpoint, and end with the numbers of a run that never crashed.
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/support/test_seed.h"
#include "tests/zero_workloads/checkpoint_runs.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;

// A point in the second save. Saves follow the steps 2, 4 and 6.
struct Place {
  std::string fail_point;  // name:kill:n
  int resumes_from;
};

// A rank writes its part in four blocks.
const std::vector<Place> kOfEveryRank = {
    {"checkpoint.begin:kill:2", 2}, {"checkpoint.block:kill:5", 2}, {"checkpoint.block:kill:6", 2},
    {"checkpoint.block:kill:7", 2}, {"checkpoint.block:kill:8", 2}, {"checkpoint.written:kill:2", 2},
    {"checkpoint.part:kill:2", 2},
};
const std::vector<Place> kOfRank0 = {
    {"checkpoint.merged:kill:2", 2},    {"checkpoint.index:kill:2", 2},    {"checkpoint.commit:kill:2", 2},
    {"checkpoint.committed:kill:2", 4}, {"checkpoint.removing:kill:1", 4},
};

class KilledInASave : public ::testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { reference_ = TrainSmall(2, {"--steps", "6", "--stage", "2"}); }

  // Runs the same command twice, as a launcher restarts a job. The first run has ranks that are killed, the
  // second has none.
  void CrashAndRestart(const Place& place, const std::vector<int>& killed) {
    SCOPED_TRACE(place.fail_point + ", ranks " + std::to_string(killed.front()) + " to " +
                 std::to_string(killed.back()));
    const TemporaryFolder folder;
    Launch launch = Command(folder / "checkpoints");
    for (const int rank : killed) launch.rank_environment[rank] = {{"HOSTCCL_FAILPOINT", place.fail_point}};
    const std::vector<RankOutcome> crashed = RunRanks(launch);
    for (const int rank : killed) EXPECT_EQ(crashed[static_cast<size_t>(rank)].exit_code, 128 + SIGKILL);
    ExpectGoesOn(folder, place.resumes_from);
  }

  Launch Command(const fs::path& folder) const {
    Launch launch =
        SmallRun(2, {"--checkpoint-dir", folder.string(), "--checkpoint-every", "2", "--keep-checkpoints",
                     "1", "--resume", "latest", "--steps", "6", "--stage", "2"});
    if (GetParam()) launch.arguments.push_back("--checkpoint-async");
    return launch;
  }

  void ExpectGoesOn(const TemporaryFolder& folder, int from) {
    Launch launch = Command(folder / "checkpoints");
    const fs::path json = folder / "report.json";
    launch.arguments = launch.arguments + Arguments{"--json", json.string()};
    const std::vector<RankOutcome> ranks = RunRanks(launch);
    ASSERT_EQ(ranks[0].exit_code, 0) << ranks[0].output;
    ASSERT_EQ(ranks[1].exit_code, 0) << ranks[1].output;
    const TrainingReport rest = ReadReport(json);
    if (from >= 0) {
      EXPECT_EQ(rest.losses.size(), 6u - static_cast<size_t>(from)) << ranks[0].output;
    }
    ExpectContinues(reference_, rest, "restarted");
    // No unfinished file may be left.
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
      names.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(names, (std::vector<std::string>{"step-00000006"}));
  }

  static TrainingReport reference_;
};

TrainingReport KilledInASave::reference_;

TEST_P(KilledInASave, Rank0) {
  for (const Place& place : kOfEveryRank) CrashAndRestart(place, {0});
  for (const Place& place : kOfRank0) CrashAndRestart(place, {0});
}

TEST_P(KilledInASave, Rank1) {
  for (const Place& place : kOfEveryRank) CrashAndRestart(place, {1});
}

TEST_P(KilledInASave, AllRanks) {
  for (const Place& place : kOfEveryRank) CrashAndRestart(place, {0, 1});
}

// Kills ranks at any moment, not only between system calls. The restarted run must end well, whichever
// checkpoint is the newest.
TEST_P(KilledInASave, AtRandomTimes) {
  const unsigned seed = test::TestSeed(1);
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 4; ++round) {
    const TemporaryFolder folder;
    const Launch launch = Command(folder / "checkpoints");
    RankProcesses ranks(launch);
    const std::string first = StepFolder(folder / "checkpoints", 2);
    for (int waited = 0; waited < 6000 && !fs::exists(first); ++waited) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(fs::exists(first)) << "the run made no checkpoint within a minute";
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 100)(random)));
    for (const int rank : {0, 1}) ranks.Kill(rank, SIGKILL);
    ranks.Wait();
    ExpectGoesOn(folder, -1);
  }
}

INSTANTIATE_TEST_SUITE_P(SyncAndAsync, KilledInASave, ::testing::Bool());

}  // namespace
}  // namespace dynamiccl::zero
