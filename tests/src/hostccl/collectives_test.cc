// SPDX-License-Identifier: Apache-2.0
// Every algorithm, protocol and number of channels against the serial reference, on random calls.
#include <gtest/gtest.h>

#include <memory>

#include "src/hostccl/communicator_init.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::RandomCalls;
using dynamiccl::testing::SpawnThreads;

// Runs fn(communicator) on n threads.
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
    for (int round = 0; round < 150; ++round) {
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
    for (int round = 0; round < 25; ++round) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, RandomCollectives, ::testing::Range(1, 6));

}  // namespace
}  // namespace dynamiccl::hostccl
