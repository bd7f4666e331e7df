// SPDX-License-Identifier: Apache-2.0
// Creating communicators from others, ending communicators, and refused calls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rounds.h"
#include "tests/support/spawn_ranks.h"

namespace dynamiccl {
namespace {

using testing::RankContext;
using testing::Rounds;
using testing::SpawnRanks;
using testing::SpawnThreads;

int CountOf(ncclComm_t comm) {
  int count = -1;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  return count;
}

int RankOf(ncclComm_t comm) {
  int rank = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclSuccess);
  return rank;
}

// Every rank contributes 1, so the result is the number of ranks that take part.
float SumOfOnes(ncclComm_t comm, cudaStream_t stream) {
  float value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, stream), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(stream), ncclSuccess) << ncclGetLastError(comm);
  return value;
}

TEST(CommunicatorLife, ShrinkRenumbersTheRanksThatStay) {
  EXPECT_EQ(SpawnRanks(5,
                       [](RankContext& rank) {
                         if (rank.rank == 1 || rank.rank == 3) return;  // Excluded ranks do not call Shrink.
                         int excluded[] = {3, 1};
                         ncclComm_t rest = nullptr;
                         ASSERT_EQ(
                             ncclCommShrink(rank.comm, excluded, 2, &rest, nullptr, NCCL_SHRINK_DEFAULT),
                             ncclSuccess)
                             << ncclGetLastError(nullptr);
                         EXPECT_EQ(CountOf(rest), 3);
                         EXPECT_EQ(RankOf(rest), rank.rank / 2);
                         EXPECT_EQ(SumOfOnes(rest, rank.stream), 3);
                         ncclComm_t pair = nullptr;  // This communicator is shrunk from a shrunk one.
                         if (RankOf(rest) != 0) {
                           int first = 0;
                           ASSERT_EQ(ncclCommShrink(rest, &first, 1, &pair, nullptr, NCCL_SHRINK_DEFAULT),
                                     ncclSuccess);
                           EXPECT_EQ(SumOfOnes(pair, rank.stream), 2);
                           EXPECT_EQ(ncclCommDestroy(pair), ncclSuccess);
                         }
                         EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
                       }),
            ncclSuccess);
}

// Rank 2 does not join the AllReduce, as if it hung.
TEST(CommunicatorLife, ShrinkWithAbortEndsWhatHangsOnTheParent) {
  EXPECT_EQ(
      SpawnRanks(
          3,
          [](RankContext& rank) {
            if (rank.rank == 2) return;
            float value = 1;
            ASSERT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream),
                      ncclSuccess);
            int excluded = 2;
            ncclComm_t rest = nullptr;
            ASSERT_EQ(ncclCommShrink(rank.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT), ncclSuccess)
                << ncclGetLastError(nullptr);
            hostcclStreamSynchronize(rank.stream);  // This call takes the error of the aborted AllReduce.
            EXPECT_EQ(SumOfOnes(rest, rank.stream), 2);
            EXPECT_NE(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream),
                      ncclSuccess)
                << "the parent moves no data any more";
            EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
          }),
      ncclSuccess);
}

TEST(CommunicatorLife, ShrinkRefusesWhatMakesNoSense) {
  EXPECT_EQ(SpawnRanks(
                2,
                [](RankContext& rank) {
                  ncclComm_t rest = nullptr;
                  int self = rank.rank;
                  int outside = 2;
                  EXPECT_EQ(ncclCommShrink(rank.comm, &self, 1, &rest, nullptr, 0), ncclInvalidArgument);
                  EXPECT_EQ(ncclCommShrink(rank.comm, &outside, 1, &rest, nullptr, 0), ncclInvalidArgument);
                  EXPECT_EQ(ncclCommShrink(rank.comm, nullptr, 0, &rest, nullptr, 0), ncclInvalidArgument);
                  EXPECT_EQ(ncclCommShrink(rank.comm, &outside, 1, &rest, nullptr, 4), ncclInvalidArgument);
                  EXPECT_EQ(ncclCommShrink(rank.comm, &outside, 1, nullptr, nullptr, 0), ncclInvalidArgument);
                }),
            ncclSuccess);
}

// Ranks 0 and 1 have a communicator. Ranks 2 and 3 are new.
TEST(CommunicatorLife, GrowTakesInNewRanks) {
  ncclUniqueId grow_id{};
  std::atomic<bool> has_id{false};
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  SpawnThreads(4, [&](int rank) {
    ncclComm_t comm = nullptr;
    ncclComm_t grown = nullptr;
    cudaStream_t stream = nullptr;
    ASSERT_EQ(hostcclStreamCreate(&stream), ncclSuccess);
    if (rank < 2) {
      ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
      EXPECT_EQ(ncclCommGrow(comm, 2, nullptr, -1, &grown, nullptr), ncclInvalidArgument);
      EXPECT_EQ(ncclCommGrow(comm, 4, nullptr, rank, &grown, nullptr), ncclInvalidArgument);
    }
    if (rank == 1) {
      ASSERT_EQ(ncclCommGetUniqueId(comm, &grow_id), ncclSuccess);
      ncclUniqueId second{};
      EXPECT_EQ(ncclCommGetUniqueId(comm, &second), ncclInvalidUsage) << "the first is not used yet";
      has_id = true;
      has_id.notify_all();
    }
    has_id.wait(false);
    const ncclUniqueId* const passed = rank == 0 ? nullptr : &grow_id;
    ASSERT_EQ(ncclCommGrow(comm, 4, passed, rank < 2 ? -1 : rank, &grown, nullptr), ncclSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(RankOf(grown), rank);
    EXPECT_EQ(SumOfOnes(grown, stream), 4);
    if (rank < 2) {
      EXPECT_EQ(SumOfOnes(comm, stream), 2) << "the parent lives on";
    }
    if (rank == 1) {
      EXPECT_EQ(ncclCommGetUniqueId(comm, &grow_id), ncclSuccess) << "the id was used";
    }
    hostcclStreamDestroy(stream);
    EXPECT_EQ(ncclCommDestroy(grown), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(CommunicatorLife, InitWithSeveralIds) {
  std::vector<ncclUniqueId> ids(3);
  for (ncclUniqueId& id : ids) ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  SpawnThreads(4, [&](int rank) {
    std::vector<ncclUniqueId> mine = ids;
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 4, rank, 5, mine.data(), nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 4, rank, 0, mine.data(), nullptr), ncclInvalidArgument);
    ASSERT_EQ(ncclCommInitRankScalable(&comm, 4, rank, 3, mine.data(), nullptr), ncclSuccess)
        << ncclGetLastError(nullptr);
    cudaStream_t stream = nullptr;
    hostcclStreamCreate(&stream);
    EXPECT_EQ(SumOfOnes(comm, stream), 4);
    hostcclStreamDestroy(stream);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

// Both ranks wait for a message that the other never sends.
TEST(CommunicatorLife, RevokeEndsWhatIsInFlightAndLeavesManagementCalls) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         float value = 1;
                         ASSERT_EQ(ncclRecv(&value, 1, ncclFloat, 1 - rank.rank, rank.comm, rank.stream),
                                   ncclSuccess);
                         EXPECT_EQ(ncclCommRevoke(rank.comm, 1), ncclInvalidArgument);
                         ASSERT_EQ(ncclCommRevoke(rank.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
                         ncclResult_t state = ncclInternalError;
                         EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &state), ncclSuccess);
                         EXPECT_EQ(state, ncclSuccess) << "quiet again";
                         EXPECT_EQ(ncclSend(&value, 1, ncclFloat, 1 - rank.rank, rank.comm, rank.stream),
                                   ncclInvalidUsage);
                         EXPECT_EQ(ncclCommRevoke(rank.comm, 0), ncclInvalidArgument);
                         EXPECT_EQ(ncclCommFinalize(rank.comm), ncclInvalidArgument);
                         ncclComm_t child = nullptr;
                         ASSERT_EQ(ncclCommSplit(rank.comm, 0, rank.rank, &child, nullptr), ncclSuccess);
                         EXPECT_EQ(SumOfOnes(child, rank.stream), 2);
                         EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
                       }),
            ncclSuccess);
}

// Rank 0 forwards data from rank 2, which never sends them, and has a second call queued. Rank 1 waits in the
// first call and must not take the second call's data for the first call's.
TEST(CommunicatorLife, ARevokedRankStartsNoQueuedCall) {
  std::atomic<bool> revoked{false};
  std::atomic<bool> ended{false};
  EXPECT_EQ(SpawnRanks(3,
                       [&](RankContext& rank) {
                         const auto broadcast = [&](int& value, int root) {
                           return ncclBroadcast(&value, &value, 1, ncclInt, root, rank.comm, rank.stream);
                         };
                         int first = 1;
                         int second = 2;
                         if (rank.rank == 2) return ended.wait(false);
                         if (rank.rank == 0) {
                           ASSERT_EQ(broadcast(first, 2), ncclSuccess);
                           ASSERT_EQ(broadcast(second, 0), ncclSuccess);
                           EXPECT_EQ(ncclCommRevoke(rank.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
                           revoked = true;
                           return revoked.notify_all();
                         }
                         revoked.wait(false);
                         EXPECT_EQ(broadcast(first, 2), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
                         EXPECT_EQ(first, 1) << "rank 2 sent nothing";
                         ended = true;
                         ended.notify_all();
                       }),
            ncclSuccess);
}

TEST(CommunicatorLife, HandlesThatAreNullOrDestroyedAreRefused) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument) << "once";
  float value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  int number = 0;
  ncclResult_t state = ncclSuccess;
  for (ncclComm_t gone : {comm, static_cast<ncclComm_t>(nullptr)}) {
    EXPECT_EQ(ncclCommCount(gone, &number), ncclInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(gone, &state), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, gone, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommSplit(gone, 0, 0, &comm, nullptr), ncclInvalidArgument);
  }
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(nullptr, 0), ncclSuccess);
}

// Runs in a child of fork(). The child has none of the parent's threads, and the communicator is busy.
// Returns 0 if the parent's objects refuse calls and can be destroyed, and else the number of the failed
// check.
int ChildCode(ncclComm_t comm, cudaStream_t busy, cudaStream_t idle) {
  float value = 1;
  if (ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr) != ncclInvalidArgument) return 1;
  if (hostcclStreamSynchronize(busy) != ncclInvalidArgument) return 2;
#ifndef __SANITIZE_THREAD__  // ThreadSanitizer supports no new threads in a child.
  if (hostcclStreamSynchronize(nullptr) != ncclSuccess) return 3;
#endif
  if (hostcclStreamDestroy(busy) != ncclSuccess || hostcclStreamDestroy(idle) != ncclSuccess) return 4;
  if (ncclCommDestroy(comm) != ncclSuccess || ncclCommAbort(comm) != ncclInvalidArgument) return 5;
  return 0;
}

TEST(CommunicatorLife, AChildOfForkCanDestroyWhatItInherited) {
  std::atomic<bool> release{false};
  const ncclResult_t ended = SpawnRanks(1, [&](RankContext& rank) {
    cudaStream_t idle = nullptr;
    ASSERT_EQ(hostcclStreamCreate(&idle), ncclSuccess);
    ASSERT_EQ(hostcclStreamSynchronize(nullptr), ncclSuccess) << "the null stream exists before the fork";
    const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
    ASSERT_EQ(hostcclLaunchHostFunc(rank.stream, wait, &release), ncclSuccess);
    float value = 1;
    ASSERT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream), ncclSuccess);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // The signal ends a child that waits for ever.
      ::_exit(ChildCode(rank.comm, rank.stream, idle));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    release = true;
    release.notify_all();
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
    EXPECT_EQ(SumOfOnes(rank.comm, rank.stream), 1) << "the parent goes on";
    EXPECT_EQ(hostcclStreamDestroy(idle), ncclSuccess);
  });
  EXPECT_EQ(ended, ncclSuccess);
}

// Other threads query the communicator and issue calls until the abort refuses them. No thread may see a
// half-destroyed communicator.
TEST(CommunicatorLife, AnAbortMayComeWhileOtherThreadsCall) {
  for (int round = 0; round < Rounds(400); ++round) {
    ncclUniqueId id{};
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    std::latch begun(3);
    const auto until_refused = [&](auto call) {
      begun.count_down();
      while (call() == ncclSuccess) {
      }
    };
    std::thread asks([&] {
      until_refused([&] {
        ncclResult_t state = ncclSuccess;
        return ncclCommGetAsyncError(comm, &state);
      });
    });
    std::thread issues([&] {
      float value = 1;
      until_refused([&] { return ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr); });
    });
    begun.arrive_and_wait();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    asks.join();
    issues.join();
  }
}

// The repeated calls run by their cached plan. The other rank must notice that rank 0 has aborted.
TEST(CommunicatorLife, AnAbortMayComeWhileARepeatedCallRuns) {
  for (int round = 0; round < Rounds(100); ++round) {
    const ncclResult_t ended = SpawnRanks(2, [](RankContext& rank) {
      ncclComm_t const comm = rank.comm;
      int calls = 0;
      std::latch called(20);
      const auto abort = [&] {
        called.wait();
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      };
      std::thread aborts;
      if (rank.rank == 0) aborts = std::thread(abort);
      float value = 1;
      while (ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, rank.stream) == ncclSuccess) {
        if (++calls <= 20) called.count_down();
      }
      hostcclStreamSynchronize(rank.stream);
      // Rank 1 may have issued fewer calls than rank 0, which aborts.
      if (rank.rank == 1) return;
      EXPECT_GE(calls, 20);
      aborts.join();
      rank.comm = nullptr;
    });
    EXPECT_EQ(ended, ncclSuccess);
  }
}

TEST(CommunicatorLife, ConfigValuesThatNcclRefusesAreNamed) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const auto refused = [&](int ncclConfig_t::*member, int value, const char* name) {
    ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
    config.*member = value;
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument) << name;
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(name), std::string::npos)
        << ncclGetLastError(nullptr);
  };
  refused(&ncclConfig_t::blocking, 2, "blocking");
  refused(&ncclConfig_t::minCTAs, 0, "minCTAs");
  refused(&ncclConfig_t::splitShare, -1, "splitShare");
  refused(&ncclConfig_t::CTAPolicy, 9, "CTAPolicy");
  refused(&ncclConfig_t::nChannelsPerNetPeer, 65, "nChannelsPerNetPeer");
  refused(&ncclConfig_t::hostCftMode, 4, "hostCftMode");
}

// A program built against NCCL 2.19 passes a structure that ends after splitShare.
TEST(CommunicatorLife, ShorterConfigsOfOlderHeadersAreRead) {
  struct {
    char bytes[offsetof(ncclConfig_t, trafficClass)];
    unsigned char behind[64];
  } old;
  std::memset(&old, 0x5a, sizeof(old));
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.size = sizeof(old.bytes);
  config.version = 21903;
  std::memcpy(old.bytes, &config, sizeof(old.bytes));
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, reinterpret_cast<ncclConfig_t*>(old.bytes)), ncclSuccess)
      << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(CommunicatorLife, AnErrorInsideAGroupStopsAllOfIt) {
  EXPECT_EQ(SpawnRanks(1,
                       [](RankContext& rank) {
                         float sent = 1;
                         float received = 0;
                         ncclGroupStart();
                         ncclAllReduce(&sent, &received, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
                         EXPECT_EQ(ncclSend(&sent, 1, ncclFloat, 9, rank.comm, rank.stream),
                                   ncclInvalidArgument);
                         EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(received, 0) << "nothing of the group ran";
                         ncclAllReduce(&sent, &received, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(received, 1) << "the next call is not affected";
                       }),
            ncclSuccess);
}

}  // namespace
}  // namespace dynamiccl
