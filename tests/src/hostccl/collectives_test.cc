// SPDX-License-Identifier: Apache-2.0
// Compares every algorithm, protocol and number of channels with the serial reference, on random calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "src/hostccl/algorithms/channel_work.h"
#include "src/hostccl/communicator_init.h"
#include "src/hostccl/hostccl_constants.h"
#include "tests/src/hostccl/make_communicators.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/rounds.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::MakeCommunicators;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using dynamiccl::testing::Rounds;
using dynamiccl::testing::SpawnThreads;

// Runs fn(communicator) on n threads, one per rank.
void WithCommunicators(int n, const std::function<void(const std::shared_ptr<Communicator>&)>& fn) {
  const auto id = MakeUniqueId();
  ASSERT_TRUE(id.has_value());
  SpawnThreads(n, [&](int rank) {
    const auto made = InitCommunicator({.n_ranks = n, .rank = rank, .id = *id});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    fn(*made);
  });
}

class RandomCollectives : public ::testing::TestWithParam<int> {};

TEST_P(RandomCollectives, EqualTheSerialReference) {
  const int n = GetParam();
  WithCommunicators(n, [n](const std::shared_ptr<Communicator>& communicator) {
    RandomCalls calls(static_cast<uint64_t>(n), n);
    // More than five threads are slow on few cores and therefore run fewer rounds.
    for (int round = 0; round < Rounds(n > 5 ? 50 : 100); ++round) {
      const RandomCall call = calls.Next();
      CallBuffers buffers(call, communicator->rank(), n);
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1)
          << "rank " << communicator->rank() << " of " << n << ": " << call.Describe();
    }
  });
}

TEST_P(RandomCollectives, GroupsOfSeveralEqualTheSerialReference) {
  const int n = GetParam();
  WithCommunicators(n, [n](const std::shared_ptr<Communicator>& communicator) {
    RandomCalls calls(static_cast<uint64_t>(1000 + n), n);
    for (int round = 0; round < Rounds(12); ++round) {
      std::vector<RandomCall> group;
      std::vector<std::unique_ptr<CallBuffers>> buffers;
      CommunicatorPlan plan{communicator, {}, {}, {}};
      for (int member = 0; member < 5; ++member) {
        group.push_back(calls.Next());
        buffers.push_back(std::make_unique<CallBuffers>(group.back(), communicator->rank(), n));
        plan.collectives.push_back(buffers.back()->Operation());
      }
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      for (size_t member = 0; member < group.size(); ++member) {
        ASSERT_EQ(buffers[member]->FirstMismatch(), -1) << group[member].Describe();
      }
    }
  });
}

// Returns the result of one AllReduce with `config`. Its sum depends on the order of the additions.
std::vector<std::byte> SumOfRoundedNumbers(const std::shared_ptr<Communicator>& communicator, DataType type,
                                           const CollectiveConfig& config, Collective collective) {
  constexpr size_t kCount = 6000;
  const size_t n = static_cast<size_t>(communicator->n_ranks());
  const size_t bytes = ElementBytes(type);
  std::vector<std::byte> data(kCount * n * bytes);
  std::mt19937_64 random(static_cast<uint64_t>(communicator->rank()));
  std::normal_distribution<double> normal(0, 100);
  for (size_t i = 0; i < kCount * n; ++i)
    dynamiccl::testing::StoreElement(type, &data[i * bytes], normal(random));
  std::vector<std::byte> result(kCount * n * bytes);
  const bool scatters = collective == Collective::kReduceScatter;
  const CollectiveOperation operation{.collective = collective,
                                      .send = data.data(),
                                      .recv = reinterpret_cast<std::byte*>(result.data()),
                                      .count = scatters ? kCount : kCount * n,
                                      .data_type = type,
                                      .op = ReduceOp::kAvg,
                                      .config = config};
  const CommunicatorPlan plan{communicator, {operation}, {}, {}};
  EXPECT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
  if (!scatters) return result;
  return {result.begin(), result.begin() + static_cast<std::ptrdiff_t>(kCount * bytes)};
}

std::vector<CollectiveConfig> AllReduceConfigs() {
  std::vector<CollectiveConfig> configs;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      for (const uint8_t channels : {1, 2, 3, 8}) configs.push_back({algorithm, protocol, channels});
    }
  }
  return configs;
}

constexpr DataType kFloatingTypes[] = {DataType::kFloat16, DataType::kBfloat16,   DataType::kFloat32,
                                       DataType::kFloat64, DataType::kFloat8e4m3, DataType::kFloat8e5m2};

TEST(Reproducibility, AConfigGivesTheSameBitsEachTime) {
  WithCommunicators(4, [](const std::shared_ptr<Communicator>& communicator) {
    for (const CollectiveConfig& config : AllReduceConfigs()) {
      const auto run = [&] {
        return SumOfRoundedNumbers(communicator, DataType::kFloat32, config, Collective::kAllReduce);
      };
      EXPECT_EQ(run(), run());
    }
  });
}

TEST(Reproducibility, PatGivesTheSameBitsEachTimeWhateverTheChannels) {
  WithCommunicators(5, [](const std::shared_ptr<Communicator>& communicator) {
    for (const DataType type : kFloatingTypes) {
      const auto run = [&](uint8_t channels) {
        const CollectiveConfig config{Algorithm::kPat, Protocol::kSimple, channels};
        return SumOfRoundedNumbers(communicator, type, config, Collective::kReduceScatter);
      };
      const auto first = run(1);
      EXPECT_EQ(run(1), first);
      EXPECT_EQ(run(3), first);
    }
  });
}

// Returns numbers for each rank whose sum depends on the order of the additions.
std::vector<std::vector<float>> RoundedNumbers(int n, size_t count) {
  std::vector<std::vector<float>> numbers(static_cast<size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    std::mt19937_64 random(static_cast<uint64_t>(rank));
    std::normal_distribution<float> normal(0, 100);
    for (size_t i = 0; i < count; ++i) numbers[static_cast<size_t>(rank)].push_back(normal(random));
  }
  return numbers;
}

// Adds the ranks' numbers in the order last + 1, last + 2, ..., last.
float SumAlongTheRing(const std::vector<std::vector<float>>& numbers, size_t element, size_t last) {
  float sum = numbers[(last + 1) % numbers.size()][element];
  for (size_t step = 2; step <= numbers.size(); ++step)
    sum += numbers[(last + step) % numbers.size()][element];
  return sum;
}

// docs/algorithms.md states the order of a ring's additions. The result must match it to the last bit,
// because programs compare runs by their bits.
TEST(RingOrder, SumsBeginBehindTheRankWhereTheyEnd) {
  constexpr int kRanks = 4;
  constexpr size_t kBlock = kChunkGranuleBytes / sizeof(float);  // Each rank gets one chunk.
  const auto numbers = RoundedNumbers(kRanks, kRanks * kBlock);
  WithCommunicators(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    const auto own = static_cast<size_t>(communicator->rank());
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      for (const Collective collective : {Collective::kReduceScatter, Collective::kAllReduce}) {
        const bool scatters = collective == Collective::kReduceScatter;
        std::vector<float> result(scatters ? kBlock : kRanks * kBlock);
        const CollectiveOperation operation{.collective = collective,
                                            .send = reinterpret_cast<const std::byte*>(numbers[own].data()),
                                            .recv = reinterpret_cast<std::byte*>(result.data()),
                                            .count = result.size(),
                                            .data_type = DataType::kFloat32,
                                            .op = ReduceOp::kSum,
                                            .config = {Algorithm::kRing, protocol, 1}};
        const CommunicatorPlan plan{communicator, {operation}, {}, {}};
        ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
        for (size_t i = 0; i < result.size(); ++i) {
          const size_t element = scatters ? own * kBlock + i : i;
          ASSERT_EQ(result[i], SumAlongTheRing(numbers, element, element / kBlock))
              << Name(collective) << ' ' << Name(protocol) << " element " << element;
        }
      }
    }
  });
}

TEST(RankOrder, EveryConfigAndCollectiveGivesTheSameBits) {
  ::setenv("HOSTCCL_SUM", "rank_order", 1);
  WithCommunicators(3, [](const std::shared_ptr<Communicator>& communicator) {
    for (const DataType type : kFloatingTypes) {
      const CollectiveConfig plain{Algorithm::kRing, Protocol::kSimple, 1};
      const auto expected = SumOfRoundedNumbers(communicator, type, plain, Collective::kAllReduce);
      for (const CollectiveConfig& config : AllReduceConfigs()) {
        EXPECT_EQ(SumOfRoundedNumbers(communicator, type, config, Collective::kAllReduce), expected);
      }
      const auto part = SumOfRoundedNumbers(communicator, type, plain, Collective::kReduceScatter);
      const auto own = expected.begin() + static_cast<std::ptrdiff_t>(part.size()) * communicator->rank();
      EXPECT_TRUE(std::equal(part.begin(), part.end(), own));
    }
  });
  ::unsetenv("HOSTCCL_SUM");
}

TEST(RankOrder, EqualsTheSerialReference) {
  ::setenv("HOSTCCL_SUM", "rank_order", 1);
  WithCommunicators(4, [](const std::shared_ptr<Communicator>& communicator) {
    RandomCalls calls(77, 4);
    for (int round = 0; round < Rounds(100); ++round) {
      const RandomCall call = calls.Next();
      CallBuffers buffers(call, communicator->rank(), 4);
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << call.Describe();
    }
  });
  ::unsetenv("HOSTCCL_SUM");
}

// An emulated link's latency and bandwidth are lower bounds of a call's time. The test asserts no upper
// bound.
TEST(ShapedCollectives, EqualTheReferenceAndTakeAtLeastTheLinksTime) {
  ::setenv("HOSTCCL_TOPOLOGY", "two-nodes-infiniband", 1);
  WithCommunicators(4, [](const std::shared_ptr<Communicator>& communicator) {
    EXPECT_EQ(communicator->info().n_nodes, 2);
    RandomCalls calls(99, 4, communicator->info().n_nodes);
    for (int round = 0; round < Rounds(40); ++round) {
      const RandomCall call = calls.Next();
      CallBuffers buffers(call, communicator->rank(), 4);
      const CommunicatorPlan plan{communicator, {buffers.Operation()}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << call.Describe();
    }
    std::vector<std::byte> data(1'500'000);
    const Transfer transfer{communicator->rank() ^ 2, data.data(), data.size()};
    const CommunicatorPlan plan{communicator, {}, {transfer}, {transfer}};
    const int64_t start = MonotonicNanoseconds();
    ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
    EXPECT_GE(MonotonicNanoseconds() - start, 1'000'000 + 30'000);
  });
  ::unsetenv("HOSTCCL_TOPOLOGY");
}

// The sender leaves while its data are still on the emulated link. 200 kB at 0.15 GB/s take 1.3 ms, which is
// much longer than the sender's part.
TEST(ShapedTransfers, ArriveThoughTheSenderHasLeft) {
  ::setenv("HOSTCCL_TOPOLOGY", "two-nodes-slow", 1);
  for (int round = 0; round < 20; ++round) {
    WithCommunicators(2, [](const std::shared_ptr<Communicator>& communicator) {
      const bool sends = communicator->rank() == 0;
      std::vector<std::byte> data(200'000, std::byte{static_cast<uint8_t>(sends ? 7 : 0)});
      const std::vector<Transfer> transfers{{communicator->rank() ^ 1, data.data(), data.size()}};
      const CommunicatorPlan plan{communicator,
                                  {},
                                  sends ? transfers : std::vector<Transfer>{},
                                  sends ? std::vector<Transfer>{} : transfers};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      EXPECT_EQ(data.back(), std::byte{7});
    });
  }
  ::unsetenv("HOSTCCL_TOPOLOGY");
}

// If a peer gives up while this rank reads from it, the data must not reach another node.
TEST(NodeExchange, NothingIsValidOnceAMemberHasGivenUp) {
  const auto communicators = MakeCommunicators(2);
  NodeExchange& node = communicators[0]->node_exchange(0);
  EXPECT_TRUE(node.Valid().Advance());
  communicators[1]->WithdrawBuffers();
  EXPECT_FALSE(node.Valid().Advance());
}

// The planner must offer only algorithms that the registry can run.
TEST(AlgorithmRegistry, HasWhatThePlannerOffers) {
  for (int c = 0; c < kTunableCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    ConfigMask mask;
    for (const AlgorithmEntry& entry : AllAlgorithms()) {
      if (entry.collective != collective) continue;
      for (int p = 0; p < kProtocols; ++p) mask.set(ConfigIndex(entry.algorithm, static_cast<Protocol>(p)));
    }
    mask &= NcclConfigs(collective);
    EXPECT_EQ(mask, SupportedConfigs(collective)) << Name(collective);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomCollectives, ::testing::Range(1, 9));

}  // namespace
}  // namespace dynamiccl::hostccl
