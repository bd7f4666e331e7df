// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms on every kind of memory, with ranks as processes: shared, private and mixed memory,
// and private memory where the system refuses copies between processes. Also a buffer that is freed while a
// peer has it mapped, and a peer that dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <tuple>

#include "src/base/clock.h"
#include "src/base/shared_memory.h"
#include "src/hostccl/debug_log.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/rounds.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using dynamiccl::testing::Rounds;
using dynamiccl::testing::RunRankProcesses;
using dynamiccl::testing::WithRankProcesses;

using CommunicatorPointer = std::shared_ptr<Communicator>;

enum class Memory { kShared, kPrivate, kMixed };

bool IsShared(Memory memory, uint64_t seed, int rank) {
  if (memory != Memory::kMixed) return memory == Memory::kShared;
  return std::mt19937_64(seed + static_cast<uint64_t>(rank))() % 2 == 0;
}

// The number of ranks, the kind of memory of the calls, and the value of HOSTCCL_CMA.
using MemoryCase = std::tuple<int, Memory, const char*>;

class NodeMemory : public ::testing::TestWithParam<MemoryCase> {
 protected:
  void SetUp() override { ::setenv("HOSTCCL_CMA", std::get<2>(GetParam()), 1); }
  void TearDown() override { ::unsetenv("HOSTCCL_CMA"); }
};

TEST_P(NodeMemory, RandomCallsEqualTheSerialReference) {
  const auto [n, memory, copies] = GetParam();
  WithRankProcesses(n, [n = n, memory = memory](const CommunicatorPointer& communicator) {
    RandomCalls calls(static_cast<uint64_t>(500 + n), n);
    calls.KeepOnly(Algorithm::kNvls);
    for (int round = 0; round < Rounds(25); ++round) {
      const RandomCall call = calls.Next();
      const int rank = communicator->rank();
      CallBuffers buffers(call, rank, n, IsShared(memory, call.data_seed, rank));
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << "rank " << rank << " of " << n << ": " << call.Describe();
    }
  });
}

TEST_P(NodeMemory, LargeCallsEqualTheSerialReference) {
  const auto [n, memory, copies] = GetParam();
  WithRankProcesses(n, [n = n, memory = memory](const CommunicatorPointer& communicator) {
    RandomCalls calls(static_cast<uint64_t>(700 + n), n);
    calls.KeepOnly(Algorithm::kNvls);
    for (int round = 0; round < 2; ++round) {
      RandomCall call = calls.Next();
      const size_t share = static_cast<size_t>(n) * ElementBytes(call.operation.data_type);
      call.operation.count = (size_t{5} << 18) / share + 1 + static_cast<size_t>(round) * 7;
      const int rank = communicator->rank();
      CallBuffers buffers(call, rank, n, IsShared(memory, call.data_seed, rank));
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << "rank " << rank << " of " << n << ": " << call.Describe();
    }
  });
}

// With an odd number of ranks, one node has one rank more than the other.
TEST_P(NodeMemory, TreesBetweenNodesEqualTheSerialReference) {
  const auto [n, memory, copies] = GetParam();
  ::setenv("HOSTCCL_TOPOLOGY", "two-nodes-infiniband", 1);
  const int ranks = std::max(n, 3);
  WithRankProcesses(ranks, [ranks, memory = memory](const CommunicatorPointer& communicator) {
    ASSERT_EQ(communicator->info().n_nodes, 2);
    RandomCalls calls(static_cast<uint64_t>(900 + ranks), ranks, 2);
    calls.KeepOnly(Algorithm::kNvlsTree);
    for (int round = 0; round < Rounds(25); ++round) {
      RandomCall call = calls.Next();
      if (round == 0) call.operation.count = 700'001;
      const int rank = communicator->rank();
      CallBuffers buffers(call, rank, ranks, IsShared(memory, call.data_seed, rank));
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << "rank " << rank << " of " << ranks << ": " << call.Describe();
    }
  });
  ::unsetenv("HOSTCCL_TOPOLOGY");
}

constexpr size_t kRoundedCount = 100'003;

// Stores numbers whose sum depends on the order of the additions. A type and a rank determine them.
void FillWithRoundedNumbers(DataType type, int rank, std::byte* to, size_t count) {
  std::mt19937_64 random(static_cast<uint64_t>(rank));
  std::normal_distribution<double> normal(0, 100);
  for (size_t i = 0; i < count; ++i) {
    dynamiccl::testing::StoreElement(type, to + i * ElementBytes(type), normal(random));
  }
}

// One reduction over buffers that FillWithRoundedNumbers has filled.
struct RoundedSum {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kAvg;
  size_t count = kRoundedCount;
  // One factor by rank; an empty list means no factors. Odd ranks pass a pointer to their factor.
  std::vector<double> multipliers;
};

std::vector<std::byte> SumOfRoundedNumbers(const CommunicatorPointer& communicator, const RoundedSum& sum,
                                           bool shared) {
  const size_t bytes = sum.count * ElementBytes(sum.type);
  dynamiccl::testing::CallMemory memory(bytes, shared);
  FillWithRoundedNumbers(sum.type, communicator->rank(), memory.data(), sum.count);
  CollectiveOperation operation{.send = memory.data(),
                                .recv = memory.data(),
                                .count = sum.count,
                                .data_type = sum.type,
                                .op = sum.op,
                                .config = {Algorithm::kNvls, Protocol::kSimple, 3}};
  ElementValue factor;
  if (!sum.multipliers.empty()) {
    const auto rank = static_cast<size_t>(communicator->rank());
    dynamiccl::testing::StoreElement(sum.type, factor.bytes.data(), sum.multipliers[rank]);
    operation.multiplier = rank % 2 == 0 ? PreMultiplier{sum.type, factor, nullptr}
                                         : PreMultiplier{sum.type, {}, factor.bytes.data()};
  }
  const CommunicatorPlan plan{communicator, {operation}, {}, {}};
  EXPECT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
  return {memory.data(), memory.data() + bytes};
}

size_t HashOf(std::span<const std::byte> bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Compares the hashes of rank 0's results. The first run sums through slots in the order of ranks. The other
// runs sum in the node's memory.
void ExpectEqualBitsOnEveryKindOfMemory(const RoundedSum& sum) {
  struct Run {
    const char* copies;
    const char* sum;
    bool shared;
  };
  constexpr Run kRuns[] = {{"0", "rank_order", false},
                           {"0", "algorithm", true},
                           {"1", "algorithm", false},
                           {"0", "algorithm", false}};
  // Rank 0 writes the hashes.
  auto hashes = SharedMemory::Create("hashes", sizeof(kRuns));
  ASSERT_TRUE(hashes.has_value());
  auto* const hash = reinterpret_cast<size_t*>(hashes->data());
  for (size_t index = 0; index < std::size(kRuns); ++index) {
    ::setenv("HOSTCCL_CMA", kRuns[index].copies, 1);
    ::setenv("HOSTCCL_SUM", kRuns[index].sum, 1);
    WithRankProcesses(3, [&](const CommunicatorPointer& communicator) {
      const auto result = SumOfRoundedNumbers(communicator, sum, kRuns[index].shared);
      if (communicator->rank() == 0) hash[index] = HashOf(result);
    });
    EXPECT_EQ(hash[index], hash[0]) << "run " << index << " of " << Name(sum.type);
  }
  EXPECT_NE(hash[0], 0U);
  ::unsetenv("HOSTCCL_CMA");
  ::unsetenv("HOSTCCL_SUM");
}

TEST(NodeSum, EveryKindOfMemoryAndRankOrderGiveTheSameBits) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32}) {
    ExpectEqualBitsOnEveryKindOfMemory({.type = type});
  }
}

TEST(NodeSum, PreMultipliedSumsHaveTheSameBitsToo) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64,
                              DataType::kFloat8e4m3, DataType::kInt32}) {
    ExpectEqualBitsOnEveryKindOfMemory(
        {.type = type, .op = ReduceOp::kSum, .multipliers = {3, 0.75, type == DataType::kInt32 ? 5 : -1.5}});
  }
}

// Adds in the order of ranks. It rounds after the product and after each addition.
template <typename Number>
std::vector<Number> PreMultipliedReference(const RoundedSum& sum) {
  std::vector<Number> total(sum.count, 0);
  std::vector<Number> inputs(sum.count);
  for (size_t rank = 0; rank < sum.multipliers.size(); ++rank) {
    FillWithRoundedNumbers(sum.type, static_cast<int>(rank), reinterpret_cast<std::byte*>(inputs.data()),
                           sum.count);
    const auto factor = static_cast<Number>(sum.multipliers[rank]);
    for (size_t i = 0; i < sum.count; ++i) {
      const Number product = inputs[i] * factor;
      total[i] = rank == 0 ? product : total[i] + product;
    }
  }
  return total;
}

// Each channel has several pieces. Each piece must use the factor of the rank it came from.
TEST(NodeSum, EveryPieceOfAPreMultipliedSumIsThatOfTheReference) {
  const RoundedSum sum{.op = ReduceOp::kSum, .count = 2'500'003, .multipliers = {1.1, -0.3, 7.7}};
  const std::vector<float> expected = PreMultipliedReference<float>(sum);
  for (const bool shared : {true, false}) {
    WithRankProcesses(3, [&](const CommunicatorPointer& communicator) {
      const auto result = SumOfRoundedNumbers(communicator, sum, shared);
      const auto* const values = reinterpret_cast<const float*>(result.data());
      const auto wrong = std::mismatch(expected.begin(), expected.end(), values);
      EXPECT_EQ(wrong.first - expected.begin(), static_cast<std::ptrdiff_t>(sum.count))
          << "rank " << communicator->rank() << " shared " << shared;
    });
  }
}

CollectiveOperation SharedSum(std::byte* data, size_t count) {
  return {.send = data,
          .recv = data,
          .count = count,
          .data_type = DataType::kFloat32,
          .config = {Algorithm::kNvls, Protocol::kSimple, 2}};
}

TEST(NodeBuffers, MappingsOfFreedBuffersAreDropped) {
  WithRankProcesses(2, [](const CommunicatorPointer& communicator) {
    for (int round = 0; round < 300; ++round) {
      // This is more than an announcement can carry.
      constexpr size_t kCount = 10'000;
      dynamiccl::testing::CallMemory memory(kCount * sizeof(float), true);
      auto* const values = reinterpret_cast<float*>(memory.data());
      std::fill_n(values, kCount, static_cast<float>(round));
      const CommunicatorPlan plan{communicator, {SharedSum(memory.data(), kCount)}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(values[kCount - 1], static_cast<float>(2 * round));
      ASSERT_LE(communicator->peer_buffers().mappings(), 70U) << "they are looked through every 64 calls";
    }
  });
}

TEST(NodeBuffers, APeerThatDiesIsARemoteError) {
  for (const bool shared : {true, false}) {
    const auto statuses = RunRankProcesses(3, [shared](const CommunicatorPointer& communicator) {
      dynamiccl::testing::CallMemory memory(size_t{4} << 20, shared);
      std::fill_n(memory.data(), size_t{4} << 20, std::byte{0});
      const CommunicatorPlan plan{communicator, {SharedSum(memory.data(), size_t{1} << 20)}, {}, {}};
      ncclResult_t result = ncclSuccess;
      for (int call = 0; call < 50 && result == ncclSuccess; ++call) {
        if (call == 5 && communicator->rank() == 1) ::raise(SIGKILL);
        result = RunLaunch({&plan, 1});
      }
      EXPECT_EQ(result, ncclRemoteError);
    });
    EXPECT_TRUE(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0) << statuses[0];
    EXPECT_TRUE(WIFSIGNALED(statuses[1])) << statuses[1];
    EXPECT_TRUE(WIFEXITED(statuses[2]) && WEXITSTATUS(statuses[2]) == 0) << statuses[2];
  }
}

// Rank 1 holds the permission to write to rank 0's buffers. It then sleeps for longer than rank 0 waits for a
// rank that only reads.
TEST(NodeBuffers, AWithdrawalWaitsForAProcessThatStandsStillWhileItWrites) {
  WithRankProcesses(2, [](const CommunicatorPointer& communicator) {
    const std::atomic<bool>& touching = communicator->header(1).gate.touching;
    const std::atomic<bool>& withdrawn = communicator->header(0).gate.withdrawn;
    if (communicator->rank() == 1) {
      EXPECT_TRUE(communicator->node_exchange(0).EnterToWrite(0).Advance());
      while (!withdrawn) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
      return communicator->node_exchange(0).Leave();
    }
    while (!touching) std::this_thread::yield();
    communicator->WithdrawBuffers();
    EXPECT_EQ(touching, !communicator->copies_between_processes());
  });
}

// The parent has not yet waited for the dead process, so its process id is still in use.
TEST(NodeBuffers, AWithdrawalDoesNotWaitForAProcessThatDiedWhileItWrote) {
  const auto statuses = RunRankProcesses(2, [](const CommunicatorPointer& communicator) {
    if (communicator->rank() == 1) {
      EXPECT_TRUE(communicator->node_exchange(0).EnterToWrite(0).Advance());
      ::raise(SIGKILL);
    }
    while (!communicator->header(1).gate.touching) std::this_thread::yield();
    const int64_t begin_ns = MonotonicNanoseconds();
    communicator->WithdrawBuffers();
    EXPECT_LT(MonotonicNanoseconds() - begin_ns, communicator->timeout_ms() * 1'000'000 / 2);
  });
  EXPECT_TRUE(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0) << statuses[0];
}

TEST(NodeBuffers, AWithdrawalNamesAProcessThatStandsStillBeyondTheTimeOut) {
  ::setenv("HOSTCCL_TIMEOUT_MS", "700", 1);
  WithRankProcesses(2, [](const CommunicatorPointer& communicator) {
    std::atomic<uint64_t>& ended = communicator->header(0).completed_launches;
    if (communicator->rank() == 1) {
      EXPECT_TRUE(communicator->node_exchange(0).EnterToWrite(0).Advance());
      while (ended == 0) std::this_thread::yield();
      return;
    }
    while (!communicator->header(1).gate.touching) std::this_thread::yield();
    communicator->WithdrawBuffers();
    if (communicator->copies_between_processes()) {
      EXPECT_NE(LastWarning().find("is stopped while it writes"), std::string::npos) << LastWarning();
    }
    ended = 1;
  });
  ::unsetenv("HOSTCCL_TIMEOUT_MS");
}

std::string CaseName(const ::testing::TestParamInfo<MemoryCase>& info) {
  constexpr std::array kNames{"Shared", "Private", "Mixed"};
  const auto [n, memory, copies] = info.param;
  return fmt::format("{}ranks{}Copies{}", n, kNames[static_cast<size_t>(memory)], copies);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NodeMemory,
                         ::testing::Combine(::testing::Values(2, 3),
                                            ::testing::Values(Memory::kShared, Memory::kPrivate,
                                                              Memory::kMixed),
                                            ::testing::Values("0", "1")),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(ManyRanks, NodeMemory,
                         ::testing::Combine(::testing::Values(5, 8), ::testing::Values(Memory::kMixed),
                                            ::testing::Values("0", "1")),
                         CaseName);

}  // namespace
}  // namespace dynamiccl::hostccl
