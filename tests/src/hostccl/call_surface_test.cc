// SPDX-License-Identifier: Apache-2.0
// The API beside the five collectives: grouped calls, per-call configs, pre-multiplied sums, simulation,
// memory, windows, parameters, and refused calls.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/spawn_ranks.h"
#include "tests/support/test_seed.h"

namespace dynamiccl {
namespace {

using testing::RankContext;
using testing::SpawnRanks;

using Ints = std::vector<int>;

// Returns element `i` of the block that rank `from` sends to rank `to`.
int Message(int from, int to, size_t i) {
  return from * 1000 + to * 100 + static_cast<int>(i % 97);
}

Ints Outgoing(int from, int n_ranks, size_t count) {
  Ints data;
  for (int to = 0; to < n_ranks; ++to) {
    for (size_t i = 0; i < count; ++i) data.push_back(Message(from, to, i));
  }
  return data;
}

// Checks AlltoAll, Gather and Scatter among `n` ranks. Each block has `count` integers.
void ExpectBlocksWhereTheyBelong(int n, size_t count, int root) {
  EXPECT_EQ(
      SpawnRanks(n,
                 [&](RankContext& rank) {
                   const Ints sent = Outgoing(rank.rank, n, count);
                   const auto block = [&](const Ints& data, int which) {
                     const auto begin = data.begin() + static_cast<std::ptrdiff_t>(count) * which;
                     return Ints(begin, begin + static_cast<std::ptrdiff_t>(count));
                   };
                   Ints all(sent.size(), -1);
                   EXPECT_EQ(ncclAlltoAll(sent.data(), all.data(), count, ncclInt, rank.comm, rank.stream),
                             ncclSuccess);
                   Ints gathered(sent.size(), -1);
                   const Ints mine = block(sent, root);
                   EXPECT_EQ(ncclGather(mine.data(), rank.rank == root ? gathered.data() : nullptr, count,
                                        ncclInt, root, rank.comm, rank.stream),
                             ncclSuccess);
                   Ints scattered(count, -1);
                   EXPECT_EQ(ncclScatter(rank.rank == root ? sent.data() : nullptr, scattered.data(), count,
                                         ncclInt, root, rank.comm, rank.stream),
                             ncclSuccess);
                   ASSERT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess) << ncclGetLastError(nullptr);
                   for (int peer = 0; peer < n; ++peer) {
                     EXPECT_EQ(block(all, peer), block(Outgoing(peer, n, count), rank.rank));
                     if (rank.rank == root) {
                       EXPECT_EQ(block(gathered, peer), block(Outgoing(peer, n, count), root));
                     }
                   }
                   EXPECT_EQ(scattered, block(Outgoing(root, n, count), rank.rank));
                 }),
      ncclSuccess);
}

TEST(GroupedCalls, AlltoAllGatherAndScatterAgainstTheirDefinition) {
  for (const unsigned seed : test::TestSeeds({1, 2})) {
    std::mt19937 random(seed);
    for (int round = 0; round < 4; ++round) {
      const int n = 1 + static_cast<int>(random() % 5);
      const size_t count = random() % 3 == 0 ? 1 : 1 + random() % 30'000;
      const int root = static_cast<int>(random() % static_cast<unsigned>(n));
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << " round " << round << " n " << n << " count " << count);
      ExpectBlocksWhereTheyBelong(n, count, root);
    }
  }
}

TEST(GroupedCalls, WrongArgumentsAndZeroCounts) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         int value = 0;
                         EXPECT_EQ(ncclAlltoAll(nullptr, nullptr, 0, ncclInt, rank.comm, rank.stream),
                                   ncclSuccess);
                         EXPECT_EQ(ncclAlltoAll(nullptr, &value, 1, ncclInt, rank.comm, rank.stream),
                                   ncclInvalidArgument);
                         EXPECT_EQ(ncclGather(&value, nullptr, 1, ncclInt, rank.rank, rank.comm, rank.stream),
                                   ncclInvalidArgument);
                         EXPECT_EQ(ncclScatter(&value, &value, 1, ncclInt, 2, rank.comm, rank.stream),
                                   ncclInvalidArgument);
                         EXPECT_EQ(ncclAlltoAll(&value, &value, 1, ncclNumTypes, rank.comm, rank.stream),
                                   ncclInvalidArgument);
                       }),
            ncclSuccess);
}

ncclCollConfig_t Selecting(const char* selection, int force = 1) {
  ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  config.algSelection = selection;
  config.forceAlgSelection = force;
  return config;
}

TEST(CallConfig, EveryTwinDoesWhatThePlainCallDoes) {
  EXPECT_EQ(
      SpawnRanks(
          2,
          [](RankContext& rank) {
            ncclCollConfig_t config = Selecting("RING_SIMPLE");
            config.maxCTAs = 1;
            config.userProfilerTag = 7;
            const float own = static_cast<float>(rank.rank + 1);
            float sum = 0;
            float all[2] = {};
            float root_sum = 0;
            float part = 0;
            const float pair[2] = {own, own * 10};
            float from_root = own;
            const auto comm = rank.comm;
            const auto stream = rank.stream;
            EXPECT_EQ(ncclAllReduceConfig(&own, &sum, 1, ncclFloat, ncclSum, comm, stream, &config), 0);
            EXPECT_EQ(ncclAllGatherConfig(&own, all, 1, ncclFloat, comm, stream, &config), 0);
            EXPECT_EQ(ncclReduceConfig(&own, &root_sum, 1, ncclFloat, ncclSum, 1, comm, stream, &config), 0);
            EXPECT_EQ(ncclReduceScatterConfig(pair, &part, 1, ncclFloat, ncclSum, comm, stream, &config), 0);
            EXPECT_EQ(ncclBroadcastConfig(&own, &from_root, 1, ncclFloat, 1, comm, stream, &config), 0);
            float swapped[2] = {};
            float gathered[2] = {};
            float scattered = 0;
            EXPECT_EQ(ncclAlltoAllConfig(pair, swapped, 1, ncclFloat, comm, stream, nullptr), 0);
            EXPECT_EQ(ncclGatherConfig(&own, gathered, 1, ncclFloat, 0, comm, stream, nullptr), 0);
            EXPECT_EQ(ncclScatterConfig(pair, &scattered, 1, ncclFloat, 0, comm, stream, nullptr), 0);
            ASSERT_EQ(hostcclStreamSynchronize(stream), ncclSuccess);
            EXPECT_EQ(sum, 3);
            EXPECT_EQ(all[0] + 10 * all[1], 21);
            EXPECT_EQ(root_sum, rank.rank == 1 ? 3 : 0);
            EXPECT_EQ(part, rank.rank == 0 ? 3 : 30);
            EXPECT_EQ(from_root, 2);
            EXPECT_EQ(swapped[1], rank.rank == 0 ? 2 : 20);
            EXPECT_EQ(gathered[1], rank.rank == 0 ? 2 : 0);
            EXPECT_EQ(scattered, rank.rank == 0 ? 1 : 10);
          }),
      ncclSuccess);
}

TEST(CallConfig, WhatNcclRefusesIsRefused) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         const auto call = [&](const ncclCollConfig_t& config) {
                           float value = 1;
                           const ncclResult_t result = ncclAllReduceConfig(
                               &value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream, &config);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                           return result;
                         };
                         ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
                         config.magic = 1;
                         EXPECT_EQ(call(config), ncclInvalidArgument);
                         EXPECT_EQ(call(Selecting("RING", 2)), ncclInvalidArgument);
                         EXPECT_EQ(call(Selecting("BUTTERFLY")), ncclInvalidArgument);
                         EXPECT_EQ(call(Selecting("PAT")), ncclInvalidArgument) << "not for AllReduce";
                         EXPECT_EQ(call(Selecting("SYMK_AGxLL_R")), ncclInvalidArgument);
                         EXPECT_EQ(call(Selecting("COLLNET_DIRECT")), ncclInvalidArgument)
                             << "known, but not to be had";
                         EXPECT_EQ(call(Selecting("COLLNET_DIRECT", 0)), ncclSuccess);
                         EXPECT_EQ(call(Selecting("BUTTERFLY", 0)), ncclSuccess);
                         config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
                         config.CTAPolicy = 4;
                         EXPECT_EQ(call(config), ncclInvalidArgument);
                         config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
                         EXPECT_EQ(call(config), ncclSuccess);
                         config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
                         config.size =
                             // The struct of the 2.31 header ends here.
                             offsetof(ncclCollConfig_t, launchCompletionEvent);
                         EXPECT_EQ(call(config), ncclSuccess);
                       }),
            ncclSuccess);
}

// The test has one rank because all ranks of a process share the latest warning.
TEST(CallConfig, ARefusedSelectionSaysWhy) {
  EXPECT_EQ(SpawnRanks(1,
                       [](RankContext& rank) {
                         const ncclCollConfig_t config = Selecting("SYMK_AGxLL_R");
                         float value = 1;
                         EXPECT_EQ(ncclAllReduceConfig(&value, &value, 1, ncclFloat, ncclSum, rank.comm,
                                                       rank.stream, &config),
                                   ncclInvalidArgument);
                         EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("symmetric"),
                                   std::string::npos);
                       }),
            ncclSuccess);
}

TEST(CallConfig, TheEventOfTheCallIsRecorded) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         hostcclEvent_t event = nullptr;
                         ASSERT_EQ(hostcclEventCreate(&event), ncclSuccess);
                         ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
                         config.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(event);
                         float value = 1;
                         int64_t time = 0;
                         EXPECT_EQ(hostcclEventTime(event, &time), ncclInvalidArgument) << "never recorded";
                         EXPECT_EQ(ncclAllReduceConfig(&value, &value, 1, ncclFloat, ncclSum, rank.comm,
                                                       rank.stream, &config),
                                   ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         EXPECT_EQ(hostcclEventTime(event, &time), ncclSuccess);
                         ncclGroupStart();
                         for (int call = 0; call < 2; ++call) {
                           ncclAllReduceConfig(&value, &value, 1, ncclFloat, ncclSum, rank.comm, rank.stream,
                                               &config);
                         }
                         EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "one event a group and communicator";
                         hostcclEventDestroy(event);
                       }),
            ncclSuccess);
}

TEST(PreMulSum, MultipliesEachRanksOwnInput) {
  EXPECT_EQ(
      SpawnRanks(
          3,
          [](RankContext& rank) {
            float factor = static_cast<float>(rank.rank + 1);
            ncclRedOp_t immediate = ncclSum;
            ncclRedOp_t later = ncclSum;
            ASSERT_EQ(
                ncclRedOpCreatePreMulSum(&immediate, &factor, ncclFloat, ncclScalarHostImmediate, rank.comm),
                ncclSuccess);
            ASSERT_EQ(ncclRedOpCreatePreMulSum(&later, &factor, ncclFloat, ncclScalarDevice, rank.comm),
                      ncclSuccess);
            factor = 10;  // Only the second operator sees this change.
            std::vector<float> ones(1000, 1);
            std::vector<float> sums(1000);
            EXPECT_EQ(
                ncclAllReduce(ones.data(), sums.data(), 1000, ncclFloat, immediate, rank.comm, rank.stream),
                ncclSuccess);
            EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
            EXPECT_EQ(sums, std::vector<float>(1000, 6));
            EXPECT_EQ(ncclAllReduce(ones.data(), sums.data(), 1000, ncclFloat, later, rank.comm, rank.stream),
                      ncclSuccess);
            EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
            EXPECT_EQ(sums, std::vector<float>(1000, 30));
            int wrong = 1;
            EXPECT_EQ(ncclAllReduce(&wrong, &wrong, 1, ncclInt, later, rank.comm, rank.stream),
                      ncclInvalidArgument)
                << "made for float";
            EXPECT_EQ(ncclRedOpDestroy(later, rank.comm), ncclSuccess);
            EXPECT_EQ(ncclRedOpDestroy(later, rank.comm), ncclInvalidArgument);
            EXPECT_EQ(ncclRedOpDestroy(ncclSum, rank.comm), ncclInvalidArgument);
            EXPECT_EQ(ncclAllReduce(ones.data(), sums.data(), 1, ncclFloat, later, rank.comm, rank.stream),
                      ncclInvalidArgument);
          }),
      ncclSuccess);
}

TEST(GroupSimulate, EstimatesAndLaunchesNothing) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         const auto estimate = [&](size_t count) {
                           std::vector<float> data(count, 1);
                           ncclSimInfo_t info = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
                           ncclGroupStart();
                           ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, rank.comm,
                                         rank.stream);
                           EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
                           EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                           EXPECT_EQ(data, std::vector<float>(count, 1)) << "nothing ran";
                           return info.estimatedTime;
                         };
                         const float small = estimate(256);
                         EXPECT_GT(small, 0);
                         EXPECT_GT(estimate(4 << 20), 10 * small);
                         EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "the group is closed";
                         ncclSimInfo_t wrong = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
                         wrong.magic = 0;
                         ncclGroupStart();
                         EXPECT_EQ(ncclGroupSimulateEnd(&wrong), ncclInvalidArgument);
                         EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
                         ncclSimInfo_t nothing = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
                         ncclGroupStart();
                         EXPECT_EQ(ncclGroupSimulateEnd(&nothing), ncclSuccess);
                         EXPECT_EQ(nothing.estimatedTime, NCCL_UNDEF_FLOAT);
                       }),
            ncclSuccess);
}

TEST(Memory, WindowsAreRegisteredTogether) {
  EXPECT_EQ(
      SpawnRanks(
          2,
          [](RankContext& rank) {
            void* buffer = nullptr;
            ASSERT_EQ(ncclMemAlloc(&buffer, 8192), ncclSuccess);
            std::memset(buffer, 1, 8192);
            ncclWindow_t window = nullptr;
            ASSERT_EQ(ncclCommWindowRegister(rank.comm, buffer, 8192, &window, NCCL_WIN_COLL_SYMMETRIC),
                      ncclSuccess)
                << ncclGetLastError(nullptr);
            ASSERT_NE(window, nullptr);
            void* address = nullptr;
            EXPECT_EQ(ncclWinGetUserPtr(rank.comm, window, &address), ncclSuccess);
            EXPECT_EQ(address, buffer);
            EXPECT_EQ(ncclCommWindowDeregister(rank.comm, window), ncclSuccess);
            EXPECT_EQ(ncclCommWindowDeregister(rank.comm, window), ncclInvalidArgument);
            EXPECT_EQ(ncclWinGetUserPtr(rank.comm, window, &address), ncclInvalidArgument);
            const int flags = rank.rank == 0 ? NCCL_WIN_DEFAULT : NCCL_WIN_COLL_SYMMETRIC;
            EXPECT_EQ(ncclCommWindowRegister(rank.comm, buffer, 8192, &window, flags), ncclInvalidArgument)
                << "ranks differ";
            EXPECT_EQ(ncclCommWindowRegister(rank.comm, buffer, 0, &window, 0), ncclInvalidArgument);
            EXPECT_EQ(ncclCommWindowRegister(rank.comm, buffer, 1, &window, NCCL_WIN_GIN_ONLY),
                      ncclInvalidUsage);
            EXPECT_EQ(ncclMemFree(buffer), ncclSuccess);
            EXPECT_EQ(ncclMemFree(buffer), ncclInvalidArgument);
            EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
          }),
      ncclSuccess);
}

TEST(Memory, RegistrationHandlesAndStatistics) {
  EXPECT_EQ(SpawnRanks(2,
                       [](RankContext& rank) {
                         float buffer[16] = {};
                         void* handle = nullptr;
                         ASSERT_EQ(ncclCommRegister(rank.comm, buffer, sizeof(buffer), &handle), ncclSuccess);
                         EXPECT_EQ(ncclCommDeregister(rank.comm, handle), ncclSuccess);
                         EXPECT_EQ(ncclCommDeregister(rank.comm, handle), ncclInvalidArgument);
                         EXPECT_EQ(ncclCommRegister(rank.comm, nullptr, 16, &handle), ncclInvalidArgument);
                         uint64_t total = 0;
                         EXPECT_EQ(ncclCommMemStats(rank.comm, ncclStatGpuMemTotal, &total), ncclSuccess);
                         EXPECT_GT(total, 0u);
                         EXPECT_EQ(ncclCommMemStats(rank.comm, ncclStatGpuMemSuspended, &total), ncclSuccess);
                         EXPECT_EQ(total, 0u);
                       }),
            ncclSuccess);
}

// Checks the result code and that the error message contains `word`.
void ExpectRefused(ncclResult_t result, const char* word) {
  EXPECT_EQ(result, ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(word), std::string::npos)
      << ncclGetLastError(nullptr);
}

TEST(Refused, WhatHasNoMeaningOnHostMemorySaysWhy) {
  EXPECT_EQ(SpawnRanks(1,
                       [](RankContext& rank) {
                         float value = 1;
                         ExpectRefused(
                             ncclPutSignal(&value, 1, ncclFloat, 0, nullptr, 0, 0, 0, 0, rank.comm, nullptr),
                             "ncclSend");
                         ExpectRefused(ncclSignal(0, 0, 0, 0, rank.comm, nullptr), "ncclSend");
                         ncclWaitSignalDesc_t signal{1, 0, 0, 0};
                         ExpectRefused(ncclWaitSignal(1, &signal, rank.comm, nullptr), "ncclSend");
                         ExpectRefused(ncclCommSuspend(rank.comm, NCCL_SUSPEND_MEM), "suspend");
                         ExpectRefused(ncclCommResume(rank.comm), "suspend");
                       }),
            ncclSuccess);
  ncclEncryptionConfig_t config = DYNAMICCL_NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclSetEncryption(&config), ncclSuccess) << "plain text is what there is";
  config.mode = NCCL_ENCRYPTION_MODE_PSK;
  ExpectRefused(ncclSetEncryption(&config), "encryption");
  EXPECT_EQ(ncclSetEncryption(nullptr), ncclInvalidArgument);
}

TEST(Parameters, AreReadByKeyAndByHandle) {
  ::setenv("HOSTCCL_CHANNELS", "300", 1);
  ncclParamHandle_t handle = nullptr;
  ASSERT_EQ(ncclParamBind(&handle, "HOSTCCL_CHANNELS"), ncclSuccess);
  int16_t number = 0;
  EXPECT_EQ(ncclParamGetI16(handle, &number), ncclSuccess);
  EXPECT_EQ(number, 300);
  uint8_t narrow = 0;
  EXPECT_EQ(ncclParamGetU8(handle, &narrow), ncclInvalidArgument) << "300 does not fit";
  const char* text = nullptr;
  EXPECT_EQ(ncclParamGetStr(handle, &text), ncclSuccess);
  EXPECT_STREQ(text, "300");
  char bytes[8] = {};
  int length = 0;
  EXPECT_EQ(ncclParamGet(handle, bytes, sizeof(bytes), &length), ncclSuccess);
  EXPECT_EQ(length, 3);
  EXPECT_EQ(ncclParamGet(handle, bytes, 2, &length), ncclInvalidArgument);
  EXPECT_EQ(ncclParamGetParameter("HOSTCCL_SUM", &text, &length), ncclSuccess);
  EXPECT_STREQ(text, "algorithm");
  EXPECT_EQ(ncclParamGetParameter("NO_SUCH_KEY", &text, &length), ncclInvalidArgument);
  const char** keys = nullptr;
  int count = 0;
  ASSERT_EQ(ncclParamGetAllParameterKeys(&keys, &count), ncclSuccess);
  EXPECT_GE(count, 10);
  for (int i = 0; i < count; ++i) EXPECT_EQ(ncclParamBind(&handle, keys[i]), ncclSuccess) << keys[i];
  ::unsetenv("HOSTCCL_CHANNELS");
}

}  // namespace
}  // namespace dynamiccl
