// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms on every kind of memory, with ranks as processes: shared, private, mixed, and
// private where the system refuses copies between processes; freed while a peer has it mapped; and a peer
// that dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>
#include <tuple>

#include "src/base/shared_memory.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/forked_ranks.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using dynamiccl::testing::RunRankProcesses;
using dynamiccl::testing::WithRankProcesses;

using CommunicatorPointer = std::shared_ptr<Communicator>;

enum class Memory { kShared, kPrivate, kMixed };

bool IsShared(Memory memory, uint64_t seed, int rank) {
  if (memory != Memory::kMixed) return memory == Memory::kShared;
  return std::mt19937_64(seed + static_cast<uint64_t>(rank))() % 2 == 0;
}

// Ranks, memory of the calls, HOSTCCL_CMA.
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
    for (int round = 0; round < 25; ++round) {
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

// An odd number of ranks leaves one node with a rank more than the other has.
TEST_P(NodeMemory, TreesBetweenNodesEqualTheSerialReference) {
  const auto [n, memory, copies] = GetParam();
  ::setenv("HOSTCCL_TOPOLOGY", "two-nodes-infiniband", 1);
  const int ranks = std::max(n, 3);
  WithRankProcesses(ranks, [ranks, memory = memory](const CommunicatorPointer& communicator) {
    ASSERT_EQ(communicator->info().n_nodes, 2);
    RandomCalls calls(static_cast<uint64_t>(900 + ranks), ranks, 2);
    calls.KeepOnly(Algorithm::kNvlsTree);
    for (int round = 0; round < 25; ++round) {
      RandomCall call = calls.Next();
      if (round == 24) call.operation.count = 700'001;
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

// AllReduce of numbers whose sum depends on the order.
std::vector<std::byte> SumOfRoundedNumbers(const CommunicatorPointer& communicator, DataType type,
                                           bool shared) {
  const size_t bytes = kRoundedCount * ElementBytes(type);
  dynamiccl::testing::CallMemory memory(bytes, shared);
  std::mt19937_64 random(static_cast<uint64_t>(communicator->rank()));
  std::normal_distribution<double> normal(0, 100);
  for (size_t i = 0; i < kRoundedCount; ++i) {
    dynamiccl::testing::StoreElement(type, memory.data() + i * ElementBytes(type), normal(random));
  }
  const CollectiveOperation operation{.send = memory.data(),
                                      .recv = memory.data(),
                                      .count = kRoundedCount,
                                      .data_type = type,
                                      .op = ReduceOp::kAvg,
                                      .config = {Algorithm::kNvls, Protocol::kSimple, 3}};
  const CommunicatorPlan plan{communicator, {operation}, {}, {}};
  EXPECT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
  return {memory.data(), memory.data() + bytes};
}

TEST(NodeSum, EveryKindOfMemoryAndRankOrderGiveTheSameBits) {
  struct Run {
    const char* copies;
    const char* sum;
    bool shared;
  };
  constexpr Run kRuns[] = {{"0", "rank_order", false},
                           {"0", "algorithm", true},
                           {"1", "algorithm", false},
                           {"0", "algorithm", false}};
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32}) {
    // Hashes of the result of each run, written by rank 0.
    auto hashes = SharedMemory::Create("hashes", sizeof(kRuns));
    ASSERT_TRUE(hashes.has_value());
    auto* const hash = reinterpret_cast<size_t*>(hashes->data());
    for (size_t index = 0; index < std::size(kRuns); ++index) {
      ::setenv("HOSTCCL_CMA", kRuns[index].copies, 1);
      ::setenv("HOSTCCL_SUM", kRuns[index].sum, 1);
      WithRankProcesses(3, [&](const CommunicatorPointer& communicator) {
        const auto result = SumOfRoundedNumbers(communicator, type, kRuns[index].shared);
        const std::string_view bits(reinterpret_cast<const char*>(result.data()), result.size());
        if (communicator->rank() == 0) hash[index] = std::hash<std::string_view>()(bits);
      });
      EXPECT_EQ(hash[index], hash[0]) << "run " << index << " of " << Name(type);
    }
    EXPECT_NE(hash[0], 0U);
  }
  ::unsetenv("HOSTCCL_CMA");
  ::unsetenv("HOSTCCL_SUM");
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
      dynamiccl::testing::CallMemory memory(4000, true);
      auto* const values = reinterpret_cast<float*>(memory.data());
      std::fill_n(values, 1000, static_cast<float>(round));
      const CommunicatorPlan plan{communicator, {SharedSum(memory.data(), 1000)}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(values[999], static_cast<float>(2 * round));
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
