// SPDX-License-Identifier: Apache-2.0
// Tests hostccl through NCCL's C API. The ranks are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/spawn_ranks.h"

namespace dynamiccl {
namespace {

using testing::RankContext;
using testing::SpawnRanks;
using testing::SpawnThreads;

using Floats = std::vector<float>;

TEST(NcclApi, AnswersQuestionsAboutACommunicator) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 23007);
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidArgument), "invalid argument");
  EXPECT_EQ(SpawnRanks(3,
                       [](RankContext& rank) {
                         int value = -1;
                         EXPECT_EQ(ncclCommCount(rank.comm, &value), ncclSuccess);
                         EXPECT_EQ(value, 3);
                         EXPECT_EQ(ncclCommUserRank(rank.comm, &value), ncclSuccess);
                         EXPECT_EQ(value, rank.rank);
                         EXPECT_EQ(ncclCommCuDevice(rank.comm, &value), ncclSuccess);
                         ncclResult_t error = ncclInternalError;
                         EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &error), ncclSuccess);
                         EXPECT_EQ(error, ncclSuccess);
                         EXPECT_EQ(ncclCommFinalize(rank.comm), ncclSuccess);
                       }),
            ncclSuccess);
}

TEST(NcclApi, IgnoresTheTailOfTheUniqueId) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_TRUE(std::all_of(id.internal + 40, id.internal + 128, [](char byte) { return byte == 0; }));
  SpawnThreads(2, [&](int rank) {
    ncclUniqueId mine = id;
    std::memset(mine.internal + 40, 'a' + rank, 88);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, mine, rank), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(NcclApi, SendAndReceiveRoundARingInAGroup) {
  // The slots hold less than this, so both directions must progress at once.
  constexpr size_t kCount = 1 << 20;
  EXPECT_EQ(SpawnRanks(4,
                       [](RankContext& rank) {
                         const Floats sent(kCount, static_cast<float>(rank.rank));
                         Floats received(kCount, -1);
                         ncclGroupStart();
                         EXPECT_EQ(ncclSend(sent.data(), kCount, ncclFloat, (rank.rank + 1) % 4, rank.comm,
                                            rank.stream),
                                   ncclSuccess);
                         EXPECT_EQ(ncclRecv(received.data(), kCount, ncclFloat, (rank.rank + 3) % 4,
                                            rank.comm, rank.stream),
                                   ncclSuccess);
                         EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(received, Floats(kCount, static_cast<float>((rank.rank + 3) % 4)));
                       }),
            ncclSuccess);
}

TEST(NcclApi, SendsToItself) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         const int sent[2] = {7, 8};
                         int received[2] = {};
                         ncclGroupStart();
                         ncclSend(&sent[0], 1, ncclInt, rank.rank, rank.comm, rank.stream);
                         ncclSend(&sent[1], 1, ncclInt, rank.rank, rank.comm, rank.stream);
                         ncclRecv(&received[0], 1, ncclInt, rank.rank, rank.comm, rank.stream);
                         ncclRecv(&received[1], 1, ncclInt, rank.rank, rank.comm, rank.stream);
                         EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(received[0], 7);
                         EXPECT_EQ(received[1], 8);
                       }),
            ncclSuccess);
}

TEST(NcclApi, ATransferToItselfNeedsItsOtherEndInTheGroup) {
  for (const int n : {1, 2}) {
    EXPECT_EQ(SpawnRanks(n,
                         [](RankContext& rank) {
                           int value = 7;
                           int other = 8;
                           EXPECT_EQ(ncclRecv(&value, 1, ncclInt, rank.rank, rank.comm, rank.stream),
                                     ncclInvalidUsage);
                           EXPECT_EQ(ncclSend(&value, 1, ncclInt, rank.rank, rank.comm, rank.stream),
                                     ncclInvalidUsage);
                           ncclGroupStart();
                           ncclSend(&value, 1, ncclInt, rank.rank, rank.comm, rank.stream);
                           ncclRecv(&other, 1, ncclInt, rank.rank, rank.comm, rank.stream);
                           ncclRecv(&value, 1, ncclInt, rank.rank, rank.comm, rank.stream);
                           EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
                           EXPECT_EQ(other, 8) << "nothing of the group ran";
                         }),
              ncclSuccess);
  }
}

// The counts must agree. NCCL would write all sent elements, beyond the end of a shorter buffer.
TEST(NcclApi, ATransferToItselfHasOneSize) {
  for (const int n : {1, 2}) {
    EXPECT_EQ(SpawnRanks(n,
                         [](RankContext& rank) {
                           const int sent[2] = {7, 8};
                           int received[4] = {1, 2, 3, 4};
                           for (const size_t count : {1, 3}) {
                             ncclGroupStart();
                             ncclSend(sent, 2, ncclInt, rank.rank, rank.comm, rank.stream);
                             ncclRecv(received, count, ncclInt, rank.rank, rank.comm, rank.stream);
                             EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << count;
                           }
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                           EXPECT_EQ(received[0], 1) << "nothing of the groups ran";
                         }),
              ncclSuccess);
  }
}

// Both ranks wait for a message that never comes. The stream keeps the error until a thread synchronizes it.
TEST(NcclApi, AnEventTellsThatTheWorkBeforeItFailed) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         float value = 1;
                         hostcclEvent_t event = nullptr;
                         ASSERT_EQ(hostcclEventCreate(&event), ncclSuccess);
                         ASSERT_EQ(ncclRecv(&value, 1, ncclFloat, 1 - rank.rank, rank.comm, rank.stream),
                                   ncclSuccess);
                         ASSERT_EQ(hostcclEventRecord(event, rank.stream), ncclSuccess);
                         ASSERT_EQ(ncclCommRevoke(rank.comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
                         EXPECT_EQ(hostcclEventSynchronize(event), ncclRemoteError);
                         EXPECT_EQ(hostcclEventSynchronize(event), ncclRemoteError) << "also again";
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
                         ASSERT_EQ(hostcclEventRecord(event, rank.stream), ncclSuccess);
                         EXPECT_EQ(hostcclEventSynchronize(event), ncclSuccess) << "no work since";
                         EXPECT_EQ(hostcclEventDestroy(event), ncclSuccess);
                       }),
            ncclSuccess);
}

TEST(NcclApi, NothingOfAGroupStartsBeforeItsOutermostEnd) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         float value = 1;
                         ncclGroupStart();
                         ncclGroupStart();
                         ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
                         EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                         EXPECT_EQ(hostcclStreamQuery(rank.stream), ncclSuccess);
                         value = 5;
                         EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(value, 10);
                       }),
            ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(NcclApi, RefusesWrongArgumentsWithAText) {
  EXPECT_EQ(
      SpawnRanks(1,
                 [](RankContext& rank) {
                   float value = 1;
                   EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclNumTypes, ncclSum, rank.comm, rank.stream),
                             ncclInvalidArgument);
                   EXPECT_NE(std::string(ncclGetLastError(rank.comm)).find("data type 12 does not exist"),
                             std::string::npos);
                   EXPECT_EQ(ncclAllReduce(&value, nullptr, 1, ncclFloat, ncclSum, rank.comm, rank.stream),
                             ncclInvalidArgument);
                   EXPECT_EQ(ncclBroadcast(&value, &value, 1, ncclFloat, 1, rank.comm, rank.stream),
                             ncclInvalidArgument);
                   EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, nullptr, rank.stream),
                             ncclInvalidArgument);
                   EXPECT_EQ(ncclSend(&value, 1, ncclFloat, 3, rank.comm, rank.stream), ncclInvalidArgument);
                   const auto no_stream = reinterpret_cast<cudaStream_t>(&value);
                   EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, no_stream),
                             ncclInvalidArgument);
                   ncclGroupStart();
                   ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, nullptr, rank.stream);
                   EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
                 }),
      ncclSuccess);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, ncclUniqueId{}, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, ncclUniqueId{}, 2), ncclInvalidArgument);
}

TEST(NcclApi, CountZeroDoesNothing) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         EXPECT_EQ(
                             ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, rank.comm, rank.stream),
                             ncclSuccess);
                         EXPECT_EQ(ncclSend(nullptr, 0, ncclFloat, 1, rank.comm, rank.stream), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                       }),
            ncclSuccess);
}

TEST(NcclApi, InitAllServesSeveralRanksFromOneThread) {
  ncclComm_t comms[3] = {};
  const int devices[3] = {4, 5, 6};
  ASSERT_EQ(ncclCommInitAll(comms, 3, devices), ncclSuccess);
  int device = 0;
  EXPECT_EQ(ncclCommCuDevice(comms[2], &device), ncclSuccess);
  EXPECT_EQ(device, 6);
  float values[3] = {1, 2, 3};
  // All three calls are on the null stream and must run concurrently.
  ncclGroupStart();
  for (int rank = 0; rank < 3; ++rank) {
    ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat, ncclSum, comms[rank], nullptr);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(nullptr), ncclSuccess);
  for (const float value : values) EXPECT_EQ(value, 6);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NcclApi, SplitsByColourInOrderOfKeys) {
  EXPECT_EQ(SpawnRanks(5,
                       [](RankContext& rank) {
                         ncclComm_t half = nullptr;
                         const int color = rank.rank == 4 ? NCCL_SPLIT_NOCOLOR : rank.rank % 2;
                         ASSERT_EQ(ncclCommSplit(rank.comm, color, -rank.rank, &half, nullptr), ncclSuccess)
                             << ncclGetLastError(nullptr);
                         if (rank.rank == 4) {
                           EXPECT_EQ(half, nullptr);
                           return;
                         }
                         int new_rank = -1;
                         EXPECT_EQ(ncclCommUserRank(half, &new_rank), ncclSuccess);
                         EXPECT_EQ(new_rank, rank.rank < 2 ? 1 : 0);
                         int gathered[2] = {-1, -1};
                         EXPECT_EQ(ncclAllGather(&rank.rank, gathered, 1, ncclInt, half, rank.stream),
                                   ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(gathered[0], rank.rank % 2 + 2);
                         EXPECT_EQ(gathered[1], rank.rank % 2);
                         EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
                       }),
            ncclSuccess);
}

TEST(NcclApi, TwoCommunicatorsInOppositeOrderOnTwoStreams) {
  EXPECT_EQ(SpawnRanks(
                2,
                [](RankContext& rank) {
                  ncclComm_t second = nullptr;
                  cudaStream_t second_stream = nullptr;
                  ASSERT_EQ(ncclCommSplit(rank.comm, 0, rank.rank, &second, nullptr), ncclSuccess);
                  ASSERT_EQ(hostcclStreamCreate(&second_stream), ncclSuccess);
                  Floats a(100'000, 1);
                  Floats b(100'000, 2);
                  for (int round = 0; round < 20; ++round) {
                    const auto first = [&] {
                      ncclAllReduce(a.data(), a.data(), a.size(), ncclFloat, ncclMax, rank.comm, rank.stream);
                    };
                    const auto other = [&] {
                      ncclAllReduce(b.data(), b.data(), b.size(), ncclFloat, ncclMax, second, second_stream);
                    };
                    if (rank.rank == 0) {
                      first();
                      other();
                    } else {
                      other();
                      first();
                    }
                  }
                  EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                  EXPECT_EQ(hostcclStreamSynchronize(second_stream), ncclSuccess);
                  EXPECT_EQ(hostcclStreamDestroy(second_stream), ncclSuccess);
                  EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
                }),
            ncclSuccess);
}

TEST(NcclApi, CallsOfOneCommunicatorOnSeveralStreamsKeepTheirOrder) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         cudaStream_t other = nullptr;
                         hostcclStreamCreate(&other);
                         Floats data(50'000, 1);
                         for (int round = 0; round < 10; ++round) {
                           ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, rank.comm,
                                         round % 2 == 0 ? rank.stream : other);
                         }
                         hostcclStreamSynchronize(rank.stream);
                         hostcclStreamSynchronize(other);
                         EXPECT_EQ(data, Floats(50'000, 1024));
                         hostcclStreamDestroy(other);
                       }),
            ncclSuccess);
}

TEST(NcclApi, ManyCommunicatorsInOneGroup) {
  EXPECT_EQ(SpawnRanks(
                3,
                [](RankContext& rank) {
                  ncclComm_t comms[3] = {rank.comm};
                  for (int i = 1; i < 3; ++i)
                    ASSERT_EQ(ncclCommSplit(rank.comm, 0, rank.rank * (i == 1 ? 1 : -1), &comms[i], nullptr),
                              ncclSuccess);
                  std::vector<Floats> data(3, Floats(10'000, 1));
                  ncclGroupStart();
                  for (size_t i = 0; i < 3; ++i) {
                    const size_t at = (i + static_cast<size_t>(rank.rank)) % 3;  // Each rank's order differs.
                    ncclAllReduce(data[at].data(), data[at].data(), 10'000, ncclFloat, ncclSum, comms[at],
                                  rank.stream);
                  }
                  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                  EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                  for (const Floats& result : data) EXPECT_EQ(result, Floats(10'000, 3));
                  for (int i = 1; i < 3; ++i) EXPECT_EQ(ncclCommDestroy(comms[i]), ncclSuccess);
                }),
            ncclSuccess);
}

// Both ranks wait for a message that the other never sends.
TEST(NcclApi, AbortFreesAWaiterAndItsPeers) {
  const auto fn = [](RankContext& rank) {
    float value = 1;
    ASSERT_EQ(ncclRecv(&value, 1, ncclFloat, 1 - rank.rank, rank.comm, rank.stream), ncclSuccess);
    if (rank.rank == 0) {
      EXPECT_EQ(ncclCommAbort(rank.comm), ncclSuccess);
      EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
      EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess) << "an error is reported once";
      rank.comm = nullptr;
      return;
    }
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
    ncclResult_t error = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &error), ncclSuccess);
    EXPECT_EQ(error, ncclRemoteError);
    EXPECT_EQ(ncclRecv(&value, 1, ncclFloat, 0, rank.comm, rank.stream), ncclRemoteError);
  };
  EXPECT_EQ(SpawnRanks(2, fn), ncclSuccess);
}

TEST(NcclApi, APeerThatNeverCallsIsATimeout) {
  ::setenv("HOSTCCL_TIMEOUT_MS", "200", 1);
  std::atomic<bool> over{false};
  const auto fn = [&over](RankContext& rank) {
    float value = 1;
    if (rank.rank == 0) {
      ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
      EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
      const std::string text = ncclGetLastError(rank.comm);
      EXPECT_NE(text.find("HOSTCCL_TIMEOUT_MS"), std::string::npos) << text;
      over = true;
      over.notify_all();
      return;
    }
    over.wait(false);
    // This rank learns of the failure with its next call, which returns without waiting.
    ncclRecv(&value, 1, ncclFloat, 0, rank.comm, rank.stream);
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
  };
  EXPECT_EQ(SpawnRanks(2, fn), ncclSuccess);
  ::unsetenv("HOSTCCL_TIMEOUT_MS");
}

TEST(NcclApi, AnUnknownTopologyIsRefusedWithThePresets) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ::setenv("HOSTCCL_TOPOLOGY", "no-such-topology", 1);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("two-nodes-infiniband"), std::string::npos);
  ::unsetenv("HOSTCCL_TOPOLOGY");
}

TEST(NcclApi, APeerThatDestroysAfterItsLastCallIsNotMissed) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(SpawnRanks(3,
                         [](RankContext& rank) {
                           Floats data(200'000, 1);
                           EXPECT_EQ(ncclBroadcast(data.data(), data.data(), data.size(), ncclFloat, 0,
                                                   rank.comm, rank.stream),
                                     ncclSuccess);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess)
                               << ncclGetLastError(nullptr);
                         }),
              ncclSuccess);
  }
}

TEST(NcclApi, ReadsNoMoreOfAConfigThanItsSize) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.size = offsetof(ncclConfig_t, netName);
  config.minCTAs = 1;
  config.maxCTAs = 2;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  config.magic = 0;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
}

}  // namespace
}  // namespace dynamiccl
