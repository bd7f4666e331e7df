// SPDX-License-Identifier: Apache-2.0
// Lines of the LL protocol. A load returns the stored data, no load returns data before they are complete,
// and flags may wrap around.
#include "src/hostccl/protocols/ll_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/src/hostccl/make_communicators.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/rounds.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::MakeCommunicators;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using dynamiccl::testing::Rounds;
using dynamiccl::testing::SpawnThreads;
using Communicators = std::vector<std::shared_ptr<Communicator>>;

TEST(LlLines, LoadsWhatWasStored) {
  for (size_t bytes = 1; bytes <= 150; ++bytes) {
    const size_t misalignment = bytes % 5;
    std::vector<std::byte> data(bytes + misalignment);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + bytes);
    alignas(64) LlLine lines[40] = {};
    StoreLines(lines, data.data() + misalignment, bytes, 9);
    std::vector<std::byte> loaded(bytes + misalignment + 1, std::byte{0x5a});
    ASSERT_TRUE(LoadLines(lines, loaded.data() + misalignment, bytes, 9));
    EXPECT_TRUE(std::equal(data.begin() + static_cast<std::ptrdiff_t>(misalignment), data.end(),
                           loaded.begin() + static_cast<std::ptrdiff_t>(misalignment)));
    EXPECT_EQ(loaded.back(), std::byte{0x5a}) << "wrote past " << bytes << " bytes";
    EXPECT_FALSE(LoadLines(lines, loaded.data(), bytes, 10));
  }
}

TEST(LlLines, AnyMissingLineIsNoticed) {
  const std::vector<std::byte> data(100, std::byte{1});
  std::vector<std::byte> loaded(100);
  for (size_t missing = 0; missing < 25; ++missing) {
    alignas(64) LlLine lines[25] = {};
    StoreLines(lines, data.data(), data.size(), 9);
    lines[missing].store(uint64_t{8} << 32);
    EXPECT_FALSE(LoadLines(lines, loaded.data(), loaded.size(), 9)) << missing;
  }
}

void StartAt(const Communicators& ranks, uint64_t step) {
  for (const auto& rank : ranks) {
    for (int channel = 0; channel < kMaxChannels; ++channel) {
      for (int peer = 0; peer < rank->n_ranks(); ++peer) {
        rank->channel(channel)[peer].ll_send.StartAt(step);
        rank->channel(channel)[peer].ll_receive.StartAt(step);
      }
    }
  }
}

class LlSteps : public ::testing::TestWithParam<uint64_t> {};

// Small and large calls alternate, so slots hold lines of many ages when the flags wrap around.
TEST_P(LlSteps, FlagsComeRound) {
  constexpr int kRanks = 3;
  const Communicators ranks = MakeCommunicators(kRanks);
  StartAt(ranks, GetParam() - 40);
  SpawnThreads(kRanks, [&](int rank) {
    RandomCalls calls(GetParam(), kRanks);
    // This many calls take at least 40 steps on each connection.
    for (int round = 0; round < std::max(20, Rounds(60)); ++round) {
      RandomCall call = calls.Next();
      call.operation.config.protocol = Protocol::kLL;
      call.operation.config.channels = static_cast<uint8_t>(1 + round % 2);
      const bool tree = round % 3 == 0 && call.operation.collective == Collective::kAllReduce;
      call.operation.config.algorithm = tree ? Algorithm::kTree : Algorithm::kRing;
      CallBuffers buffers(call, rank, kRanks);
      const CommunicatorPlan plan{ranks[static_cast<size_t>(rank)], {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << call.Describe();
    }
  });
  EXPECT_GT(ranks[0]->channel(0)[ranks[0]->ring()[1]].ll_send.step(), GetParam()) << "did not come round";
}

INSTANTIATE_TEST_SUITE_P(At, LlSteps,
                         ::testing::Values(uint64_t{1} << 30, uint64_t{1} << 31, uint64_t{1} << 32));

void Broadcast(const Communicators& ranks, size_t bytes) {
  SpawnThreads(2, [&](int rank) {
    std::vector<std::byte> data(bytes, std::byte{3});
    const CollectiveOperation operation{.collective = Collective::kBroadcast,
                                        .send = data.data(),
                                        .recv = data.data(),
                                        .count = bytes,
                                        .data_type = DataType::kInt8,
                                        .config = {Algorithm::kRing, Protocol::kLL, 1}};
    const CommunicatorPlan plan{ranks[static_cast<size_t>(rank)], {operation}, {}, {}};
    EXPECT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
  });
}

// After a short message in each slot at step 2^30 - 8 + slot, no line of the slot has an older flag.
TEST(LlSteps, WholeSlotsAreWrittenBeforeFlagsComeRound) {
  const Communicators ranks = MakeCommunicators(2);
  constexpr uint64_t kClean = (uint64_t{1} << 30) - kLlSlots;
  StartAt(ranks, kClean - kLlSlots);
  Broadcast(ranks, kLlSlots * kLlSlotBytes);
  for (uint64_t slot = 0; slot < kLlSlots; ++slot) Broadcast(ranks, 8);
  const Connection& receiver = ranks[1]->channel(0)[0];
  ASSERT_EQ(receiver.ll_receive.step(), kClean + kLlSlots);
  for (uint64_t slot = 0; slot < kLlSlots; ++slot) {
    const uint32_t first = static_cast<uint32_t>(receiver.incoming->lines[slot][0].load() >> 32);
    EXPECT_EQ(first & 0x7fffffff, kClean + slot);
    for (const auto& line : receiver.incoming->lines[slot]) ASSERT_EQ(line.load() >> 32, first);
  }
}

}  // namespace
}  // namespace dynamiccl::hostccl
