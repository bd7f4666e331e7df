// SPDX-License-Identifier: Apache-2.0
// A rank is lost at every step. The other ranks end with ncclRemoteError, or with success if they no longer
// needed that rank. No rank hangs, and nothing stays behind on the machine. A rank that only stands still
// delays the others and causes no error.
#include <gtest/gtest.h>

#include <functional>

#include "src/base/fail_point.h"
#include "tests/support/rank_processes.h"

namespace dynamiccl {
namespace {

using testing::Leftovers;
using testing::RankEnd;
using testing::RankPlace;
using testing::RankRun;
using testing::RunAtOnce;
using testing::RunRanks;

const auto* const kOwnNamespaces = ::testing::AddGlobalTestEnvironment(new testing::OwnNamespaces);

constexpr int kRanks = 3;
// In ms. The time-out is short because the tests wait for it whenever only the time-out shows a loss. A rank
// that is slow for another reason ends with the same error.
constexpr const char* kTimeoutMs = "1000";
// The exit codes of rank_program's behaviour "life".
constexpr int kAllWell = 0;
constexpr int kRemoteError = 3;

std::function<RankPlace(int)> Places(int failing, const std::string& failure, bool several_hosts,
                                     const char* timeout_ms) {
  return [=](int rank) {
    RankPlace result{{{"HOSTCCL_TIMEOUT_MS", timeout_ms}}, ""};
    if (rank == failing) result.environment["HOSTCCL_FAILPOINT"] = failure;
    if (several_hosts) result.environment["HOSTCCL_HOSTID"] = rank == 0 ? "first" : "second";
    return result;
  };
}

std::vector<RankEnd> LoseRank(int lost, const std::string& failure, bool several_hosts) {
  return RunRanks({.program = DYNAMICCL_RANK_PROGRAM,
                   .n_ranks = kRanks,
                   .behaviour = "life",
                   .place = Places(lost, failure, several_hosts, kTimeoutMs),
                   .continue_last = failure.find(":stop") != std::string::npos});
}

// Returns true if the other ranks still need a rank that passes this step.
bool IsMissed(FailPoint point) {
  return point != FailPoint::kFinalize && point != FailPoint::kDestroy;
}

class Faults : public ::testing::TestWithParam<bool> {};

TEST_P(Faults, AnyRankMayDieAtAnyStep) {
  const auto before = Leftovers();
  const auto names = FailPointNames();
  // The fail points after kDestroy belong to the trainer.
  for (size_t point = 0; point <= static_cast<size_t>(FailPoint::kDestroy); ++point) {
    for (int lost = 0; lost < kRanks; ++lost) {
      const auto which = static_cast<FailPoint>(point);
      const bool passes = (which != FailPoint::kIdMade || lost == 0);
      const auto ends = LoseRank(lost, std::string(names[point]) + ":kill", GetParam());
      int told = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        const RankEnd& end = ends[static_cast<size_t>(rank)];
        const bool good = rank == lost && passes ? end.killed()
                                                 : end.exited_with(kAllWell) || end.exited_with(kRemoteError);
        EXPECT_TRUE(good) << names[point] << ": rank " << lost << " lost, rank " << rank << " has status "
                          << end.status << (end.hung ? ", hung" : "");
        told += end.exited_with(kRemoteError) ? 1 : 0;
      }
      if (!passes || !IsMissed(which)) continue;
      EXPECT_GE(told, 1) << names[point] << ": nobody missed rank " << lost;
    }
  }
  EXPECT_EQ(Leftovers(), before);
}

TEST_P(Faults, ARankThatLeavesWithoutAWordIsMissed) {
  for (const char* failure : {"init.agreed:exit", "launch.begin:exit:3", "split.begin:exit"}) {
    const auto ends = LoseRank(1, failure, GetParam());
    EXPECT_TRUE(ends[1].exited_with(0)) << failure;
    EXPECT_TRUE(ends[0].exited_with(kRemoteError)) << failure << ": status " << ends[0].status;
    EXPECT_TRUE(ends[2].exited_with(kRemoteError)) << failure << ": status " << ends[2].status;
  }
}

// Rank 1 is stopped for longer than the time-out. When it continues, it learns that the others are gone.
TEST_P(Faults, AStoppedRankIsMissedAfterTheTimeout) {
  for (const RankEnd& end : LoseRank(1, "launch.begin:stop:2", GetParam())) {
    EXPECT_TRUE(end.exited_with(kRemoteError)) << end.status << (end.hung ? ", hung" : "");
  }
}

// A debugger or an overloaded machine stops a rank in the same way. The job succeeds once that rank
// continues.
TEST_P(Faults, AnyRankMayStandStillAtAnyStep) {
  const auto names = FailPointNames();
  for (size_t point = 0; point <= static_cast<size_t>(FailPoint::kDestroy); ++point) {
    std::vector<RankRun> runs;  // The runs are concurrent because they mostly wait.
    for (int still = 0; still < kRanks; ++still)
      runs.push_back({.program = DYNAMICCL_RANK_PROGRAM,
                      .n_ranks = kRanks,
                      .behaviour = "life",
                      .place = Places(still, std::string(names[point]) + ":stop", GetParam(), "60000"),
                      .stopped_for = std::chrono::milliseconds(150)});
    const auto ended = RunAtOnce(runs);
    for (size_t still = 0; still < ended.size(); ++still) {
      for (size_t rank = 0; rank < ended[still].size(); ++rank) {
        const RankEnd& end = ended[still][rank];
        EXPECT_TRUE(end.exited_with(kAllWell))
            << names[point] << ": rank " << still << " stood still, rank " << rank << " has status "
            << end.status << (end.hung ? ", hung" : "");
      }
    }
  }
}

// The algorithm is NVLSTree: each head sums a share of its node's buffers and sends the sum to the other
// node. Rank 0 arrives last and dies when its own share is done. By then rank 1 has announced its buffers,
// but it reads those of rank 0 only later. The other node is stopped meanwhile and cannot see the death.
TEST(LostRank, IsNoPartOfASumThatAnotherNodeGets) {
  const auto place = [](int rank) {
    const char* const of_rank[] = {"", "launch.moving:delay", "launch.moving:stop:2", "launch.moving:stop"};
    return RankPlace{{{"HOSTCCL_TOPOLOGY", "two-nodes-ethernet"},
                      {"HOSTCCL_CHANNELS", "1"},
                      {"NCCL_ALGO", "NVLSTree"},
                      {"HOSTCCL_FAILPOINT", of_rank[rank]}},
                     ""};
  };
  const auto ends = RunRanks({.program = DYNAMICCL_RANK_PROGRAM,
                              .n_ranks = 4,
                              .behaviour = "short_life",
                              .place = place,
                              .stopped_for = std::chrono::milliseconds(1000)});
  EXPECT_TRUE(ends[0].killed());
  for (const size_t rank : {1, 2, 3}) {
    EXPECT_TRUE(ends[rank].exited_with(kRemoteError)) << "rank " << rank << ": status " << ends[rank].status;
  }
}

INSTANTIATE_TEST_SUITE_P(SeveralHosts, Faults, ::testing::Bool());

TEST(FailPoints, AMistakeInTheSettingIsAnError) {
  const auto place = [](int) { return RankPlace{{{"HOSTCCL_FAILPOINT", "launch.begni:kill"}}, ""}; };
  for (const RankEnd& end : RunRanks({DYNAMICCL_RANK_PROGRAM, 1, "life", place})) {
    EXPECT_TRUE(end.exited_with(1)) << end.status;
  }
}

}  // namespace
}  // namespace dynamiccl
