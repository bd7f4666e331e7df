// SPDX-License-Identifier: Apache-2.0
// The work of a kernel's threads, run one after another on the host. For any grid, the threads together must
// fill and check exactly what data_check.h fills and checks alone.
#include "tools/bench/cuda/kernel_bodies.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/test_seed.h"
#include "tools/bench/data_check.h"

namespace dynamiccl::cuda {
namespace {

std::vector<std::byte> FillByThreads(const CheckedCall& call, int rank, uint64_t threads) {
  const size_t width = ElementBytes(call.type);
  std::vector<std::byte> filled(SendCount(call) * width);
  for (uint64_t thread = 0; thread < threads; ++thread)
    FillShare(call, rank, filled.data(), SendCount(call), width, {thread, threads});
  return filled;
}

CheckTally CheckByThreads(const CheckedCall& call, int rank, const std::vector<std::byte>& received,
                          uint64_t threads) {
  CheckTally all;
  for (uint64_t thread = 0; thread < threads; ++thread) {
    const CheckTally own = CheckShare(call, rank, received.data(), ReceiveCount(call),
                                      ElementBytes(call.type), {thread, threads});
    all.looked_at += own.looked_at;
    all.wrong += own.wrong;
  }
  return all;
}

// Returns the expected result of an all-gather or broadcast, made of the ranks' inputs.
std::vector<std::byte> Gathered(const CheckedCall& call) {
  std::vector<std::byte> all;
  for (int rank = 0; rank < call.n_ranks; ++rank) {
    const std::vector<std::byte> part = InputOf(call, rank);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(KernelBodies, ThreadsTogetherDoWhatTheHostDoes) {
  const uint32_t seed = test::TestSeed(1);
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    CheckedCall call{.collective = TestedCollective::kAllGather,
                     .count = 1 + random() % 700,
                     .type = static_cast<DataType>(random() % kDataTypes),
                     .n_ranks = static_cast<int>(1 + random() % 5),
                     .repetition = random() % 3};
    const uint64_t threads = 1 + random() % 1000;  // There may be more threads than elements.
    const int rank = static_cast<int>(random() % static_cast<unsigned>(call.n_ranks));
    ASSERT_EQ(FillByThreads(call, rank, threads), InputOf(call, rank)) << Name(call.type) << ' ' << threads;
    std::vector<std::byte> received = Gathered(call);
    ASSERT_EQ(CheckByThreads(call, rank, received, threads).wrong, 0u);
    const uint64_t spoilt = random() % ReceiveCount(call);
    StoreElement(call.type, received.data() + spoilt * ElementBytes(call.type), 7);
    const CheckTally tally = CheckByThreads(call, rank, received, threads);
    ASSERT_EQ(tally.looked_at, ReceiveCount(call));
    ASSERT_EQ(tally.wrong, 1u) << Name(call.type) << " element " << spoilt;
    ASSERT_EQ(tally.wrong, CountWrong(call, rank, received));
  }
}

TEST(KernelBodies, BlocksCoverTheBufferOnce) {
  for (const uint64_t blocks : {1ull, 7ull, 99ull, 132ull}) {
    uint64_t next = 0;
    for (uint64_t block = 0; block < blocks; ++block) {
      const Slice slice = SliceOf(1'000'003, block, blocks);
      EXPECT_EQ(slice.begin, next);
      next = slice.end;
    }
    EXPECT_EQ(next, 1'000'003u);
  }
}

TEST(KernelBodies, DutyIsBusyAtTheBeginningOfEachPeriodAndEnds) {
  const DutyCycle duty{.period_ns = 100, .busy_ns = 30, .most_ns = 1000};
  uint64_t busy = 0;
  for (uint64_t now = 0; now < duty.most_ns; ++now) {
    EXPECT_FALSE(IsOver(duty, now));
    if (IsBusy(duty, now)) {
      ++busy;
    } else {
      EXPECT_TRUE(IsBusy(duty, now + IdleLeft(duty, now)));
    }
  }
  EXPECT_EQ(busy, 300u);
  EXPECT_TRUE(IsOver(duty, 1000));
}

}  // namespace
}  // namespace dynamiccl::cuda
