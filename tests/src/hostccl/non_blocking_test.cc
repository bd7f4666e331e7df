// SPDX-License-Identifier: Apache-2.0
// Communicators with blocking = 0: which calls return ncclInProgress, and how that state ends. The ranks are
// threads. An event of the test holds one rank back, so that the other is certainly still in progress.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/spawn_ranks.h"
#include "tests/support/told_event.h"

namespace dynamiccl {
namespace {

using testing::SpawnThreads;

ncclConfig_t NonBlocking() {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclResult_t StateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

// Polls the state, as programs do.
ncclResult_t WaitWhileInProgress(ncclComm_t comm) {
  while (StateOf(comm) == ncclInProgress) std::this_thread::yield();
  return StateOf(comm);
}

// Runs `body` on n threads. Each has a stream and its rank of one non-blocking communicator.
template <typename Body>
void WithRanks(int n, const Body& body) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  SpawnThreads(n, [&](int rank) {
    testing::RankContext context{rank, n, nullptr, nullptr};
    ncclConfig_t config = NonBlocking();
    const ncclResult_t begun = ncclCommInitRankConfig(&context.comm, n, id, rank, &config);
    ASSERT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    ASSERT_EQ(WaitWhileInProgress(context.comm), ncclSuccess) << ncclGetLastError(context.comm);
    ASSERT_EQ(hostcclStreamCreate(&context.stream), ncclSuccess);
    body(context);
    EXPECT_EQ(hostcclStreamDestroy(context.stream), ncclSuccess);
    if (context.comm != nullptr) {
      EXPECT_EQ(ncclCommDestroy(context.comm), ncclSuccess);
    }
  });
}

TEST(NonBlocking, InitIsInProgressUntilAllRanksHaveCome) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  test::ToldEvent first_has_begun;
  SpawnThreads(2, [&](int rank) {
    if (rank == 1) first_has_begun.Await();
    ncclConfig_t config = NonBlocking();
    ncclComm_t comm = nullptr;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    ASSERT_NE(comm, nullptr) << "the handle exists at once";
    if (rank == 0) {
      EXPECT_EQ(begun, ncclInProgress);
      EXPECT_EQ(StateOf(comm), ncclInProgress);
      int count = 0;
      EXPECT_EQ(ncclCommCount(comm, &count), ncclInvalidArgument) << "it cannot be used yet";
      EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
      first_has_begun.Tell();
    }
    EXPECT_EQ(WaitWhileInProgress(comm), ncclSuccess);
    int count = 0;
    EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(NonBlocking, AbortEndsAnInitialisationThatWaitsForOthers) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NonBlocking();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << "nobody else ever comes";
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument) << "the handle is gone";
}

TEST(NonBlocking, AFailedInitialisationIsTheState) {
  ncclConfig_t config = NonBlocking();
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, 2, ncclUniqueId{}, 0, &config);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(WaitWhileInProgress(comm), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find("unique id"), std::string::npos);
  float value = 0;
  EXPECT_NE(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(NonBlocking, CollectivesSplitAndFinalizeGoThroughTheState) {
  WithRanks(3, [](testing::RankContext& rank) {
    float value = 1;
    const ncclResult_t begun = ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess);
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
    EXPECT_EQ(value, 3);

    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommSplit(rank.comm, 0, -rank.rank, &child, nullptr), ncclSuccess);
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << "the parent's state tells";
    ASSERT_NE(child, nullptr);
    int child_rank = -1;
    EXPECT_EQ(ncclCommUserRank(child, &child_rank), ncclSuccess);
    EXPECT_EQ(child_rank, 2 - rank.rank);

    for (ncclComm_t comm : {child, rank.comm}) {
      const ncclResult_t finalized = ncclCommFinalize(comm);
      EXPECT_TRUE(finalized == ncclInProgress || finalized == ncclSuccess) << finalized;
      EXPECT_EQ(WaitWhileInProgress(comm), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
}

TEST(NonBlocking, FinalizeIsInProgressWhileTheStreamStillRuns) {
  WithRanks(1, [](testing::RankContext& rank) {
    test::ToldEvent gate;
    ASSERT_EQ(hostcclLaunchHostFunc(
                  rank.stream, [](void* data) { static_cast<test::ToldEvent*>(data)->Await(); }, &gate),
              ncclSuccess);
    float value = 1;
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << "enqueued, though the stream is held up";
    EXPECT_EQ(ncclCommFinalize(rank.comm), ncclInProgress);
    EXPECT_EQ(StateOf(rank.comm), ncclInProgress);
    gate.Tell();
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess);
  });
}

TEST(NonBlocking, AGroupOverSeveralCommunicatorsIsInProgressOnAll) {
  WithRanks(2, [](testing::RankContext& rank) {
    ncclComm_t other = nullptr;
    ASSERT_EQ(ncclCommSplit(rank.comm, 0, rank.rank, &other, nullptr), ncclSuccess);
    ASSERT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess);
    float a = 1;
    float b = 2;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&a, &a, 1, ncclFloat, ncclSum, rank.comm, rank.stream), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&b, &b, 1, ncclFloat, ncclSum, other, rank.stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess);
    EXPECT_EQ(WaitWhileInProgress(other), ncclSuccess);
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 4);
    EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
  });
}

TEST(NonBlocking, SeveralRanksOfOneThreadInAGroup) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NonBlocking();
  std::vector<ncclComm_t> comms(3);
  ncclGroupStart();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ncclCommInitRankConfig(&comms[static_cast<size_t>(rank)], 3, id, rank, &config), ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(WaitWhileInProgress(comm), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(NonBlocking, BothKindsInOneGroupAreRefused) {
  WithRanks(1, [](testing::RankContext& rank) {
    ncclUniqueId id{};
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclComm_t blocking = nullptr;
    ASSERT_EQ(ncclCommInitRank(&blocking, 1, id, 0), ncclSuccess);
    float value = 1;
    ncclGroupStart();
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, blocking, rank.stream);
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(blocking), ncclSuccess);
  });
}

TEST(NonBlocking, AWrongArgumentIsKeptAsTheState) {
  WithRanks(1, [](testing::RankContext& rank) {
    float value = 1;
    EXPECT_EQ(ncclBroadcast(&value, &value, 1, ncclFloat, 7, rank.comm, rank.stream), ncclInvalidArgument);
    EXPECT_EQ(StateOf(rank.comm), ncclInvalidArgument);
  });
}

// Every rank contributes 1, so the result is the number of ranks that take part.
float SumOfOnes(ncclComm_t comm, cudaStream_t stream) {
  float value = 1;
  const ncclResult_t begun = ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, stream);
  EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
  EXPECT_EQ(WaitWhileInProgress(comm), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(stream), ncclSuccess) << ncclGetLastError(comm);
  return value;
}

TEST(NonBlocking, ShrinkIsInProgressOnTheParentUntilTheOthersCome) {
  test::ToldEvent first_has_begun;
  WithRanks(4, [&](testing::RankContext& rank) {
    if (rank.rank == 1) return;  // Rank 1 is excluded from the new communicator.
    if (rank.rank != 0) first_has_begun.Await();
    int excluded = 1;
    ncclComm_t rest = nullptr;
    EXPECT_EQ(ncclCommShrink(rank.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    if (rank.rank == 0) {
      EXPECT_EQ(StateOf(rank.comm), ncclInProgress);
      float value = 1;
      EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream),
                ncclInvalidArgument)
          << "it cannot be used meanwhile";
      first_has_begun.Tell();
    }
    ASSERT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << ncclGetLastError(rank.comm);
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(StateOf(rest), ncclSuccess) << "it exists when the parent is done";
    int rank_of_rest = -1;
    EXPECT_EQ(ncclCommUserRank(rest, &rank_of_rest), ncclSuccess);
    EXPECT_EQ(rank_of_rest, rank.rank == 0 ? 0 : rank.rank - 1);
    EXPECT_EQ(SumOfOnes(rest, rank.stream), 3);
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
  });
}

// Rank 2 does not join the AllReduce, as if it hung.
TEST(NonBlocking, ShrinkWithAbortEndsWhatHangsOnTheParent) {
  // The rank that shrinks first ends the other rank's AllReduce. The barrier lets both enqueue theirs before.
  std::barrier enqueued(2);
  std::latch shrunk(2);
  WithRanks(3, [&](testing::RankContext& rank) {
    if (rank.rank == 2) return shrunk.wait();
    const std::unique_ptr<std::latch, void (*)(std::latch*)> at_end(
        &shrunk, [](std::latch* latch) { latch->count_down(); });
    float value = 1;
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << "enqueued";
    enqueued.arrive_and_wait();
    int excluded = 2;
    ncclComm_t rest = nullptr;
    EXPECT_EQ(ncclCommShrink(rank.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT), ncclSuccess);
    ASSERT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << ncclGetLastError(rank.comm);
    hostcclStreamSynchronize(rank.stream);  // This call takes the error of the aborted AllReduce.
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(SumOfOnes(rest, rank.stream), 2);
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
  });
}

// Rank 1 keeps its communicator but does not call Shrink.
TEST(NonBlocking, AbortEndsAShrinkThatWaitsForOthers) {
  test::ToldEvent aborted;
  WithRanks(3, [&](testing::RankContext& rank) {
    if (rank.rank != 0) return aborted.Await();
    int excluded = 2;
    ncclComm_t rest = nullptr;
    EXPECT_EQ(ncclCommShrink(rank.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    EXPECT_EQ(StateOf(rank.comm), ncclInProgress);
    EXPECT_EQ(ncclCommAbort(rank.comm), ncclSuccess);
    EXPECT_EQ(rest, nullptr);
    rank.comm = nullptr;
    aborted.Tell();
  });
}

// Ranks 0 and 1 have a communicator. Rank 2 is new and comes when rank 0 certainly waits for it.
TEST(NonBlocking, GrowIsInProgressOnTheNewHandle) {
  ncclUniqueId grow_id{};
  test::ToldEvent has_id;
  test::ToldEvent first_has_begun;
  const auto use = [](ncclComm_t grown, ncclResult_t begun) {
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    ASSERT_NE(grown, nullptr) << "the handle exists at once";
    ASSERT_EQ(WaitWhileInProgress(grown), ncclSuccess) << ncclGetLastError(grown);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(hostcclStreamCreate(&stream), ncclSuccess);
    EXPECT_EQ(SumOfOnes(grown, stream), 3);
    EXPECT_EQ(hostcclStreamDestroy(stream), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(grown), ncclSuccess);
  };
  std::thread newcomer([&] {
    has_id.Await();
    first_has_begun.Await();
    ncclConfig_t config = NonBlocking();
    ncclComm_t grown = nullptr;
    const ncclResult_t begun = ncclCommGrow(nullptr, 3, &grow_id, 2, &grown, &config);
    use(grown, begun);
  });
  WithRanks(2, [&](testing::RankContext& rank) {
    if (rank.rank == 1) {
      EXPECT_EQ(ncclCommGetUniqueId(rank.comm, &grow_id), ncclSuccess);
      has_id.Tell();
    }
    has_id.Await();
    ncclComm_t grown = nullptr;
    const ncclResult_t begun =
        ncclCommGrow(rank.comm, 3, rank.rank == 1 ? &grow_id : nullptr, -1, &grown, nullptr);
    if (rank.rank == 0) {
      EXPECT_EQ(StateOf(grown), ncclInProgress);
      first_has_begun.Tell();
    }
    use(grown, begun);
    EXPECT_EQ(SumOfOnes(rank.comm, rank.stream), 2) << "the parent lives on";
  });
  newcomer.join();
}

// The grown communicator has a place for rank 2, but no process takes that place.
TEST(NonBlocking, AbortEndsAGrowThatWaitsForOthers) {
  ncclUniqueId grow_id{};
  test::ToldEvent has_id;
  WithRanks(2, [&](testing::RankContext& rank) {
    if (rank.rank == 0) {
      EXPECT_EQ(ncclCommGetUniqueId(rank.comm, &grow_id), ncclSuccess);
      has_id.Tell();
    }
    has_id.Await();
    ncclComm_t grown = nullptr;
    ncclCommGrow(rank.comm, 3, rank.rank == 0 ? &grow_id : nullptr, -1, &grown, nullptr);
    ASSERT_NE(grown, nullptr);
    EXPECT_EQ(StateOf(grown), ncclInProgress);
    EXPECT_EQ(ncclCommAbort(grown), ncclSuccess);
  });
}

// Each rank waits for a message that its peer never sends. Rank 0 may revoke before the stream has its call.
// No rank leaves before all ranks have revoked. Until then, the others would take a missing peer for a
// failure.
TEST(NonBlocking, RevokeGoesThroughTheStateAndLeavesManagementCalls) {
  std::latch all_are_done(3);
  WithRanks(3, [&](testing::RankContext& rank) {
    const std::shared_ptr<void> together(nullptr, [&](void*) { all_are_done.arrive_and_wait(); });
    float value = 1;
    ncclRecv(&value, 1, ncclFloat, (rank.rank + 1) % 3, rank.comm, rank.stream);
    if (rank.rank != 0) {
      EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess);
    }
    const ncclResult_t begun = ncclCommRevoke(rank.comm, NCCL_REVOKE_DEFAULT);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    EXPECT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << "quiet again";
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
    if (rank.rank == 2) return;
    int excluded = 2;
    ncclComm_t rest = nullptr;
    EXPECT_EQ(ncclCommShrink(rank.comm, &excluded, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess);
    ASSERT_EQ(WaitWhileInProgress(rank.comm), ncclSuccess) << ncclGetLastError(rank.comm);
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(SumOfOnes(rest, rank.stream), 2);
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
    EXPECT_EQ(ncclSend(&value, 1, ncclFloat, 1 - rank.rank, rank.comm, rank.stream), ncclInvalidUsage)
        << "it moves no data any more";
  });
}

}  // namespace
}  // namespace dynamiccl
