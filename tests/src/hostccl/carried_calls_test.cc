// SPDX-License-Identifier: Apache-2.0
// One-pass calls whose data travel with the announcement of the buffers. A rank uses its parcels in turn and
// does not wait for the readers of the last one. Ranks that run ahead, and carried calls between other calls,
// could break this scheme.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "src/hostccl/launch.h"
#include "tests/src/hostccl/make_communicators.h"
#include "tests/support/rounds.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::MakeCommunicators;
using dynamiccl::testing::Rounds;
using dynamiccl::testing::SpawnThreads;

constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather,
                                       Collective::kReduceScatter};

// The properties of a call that all ranks must share.
struct Call {
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  uint8_t channels = 1;
};

// Most calls are small enough to be carried. Some are at the size limit or beyond it.
Call NextCall(std::mt19937_64& random, int n) {
  const size_t border = kParcelBytes / sizeof(float);
  const size_t largest = random() % 8 == 0 ? 2 * border : border / static_cast<size_t>(n) + 2;
  return {kCollectives[random() % 3], 1 + random() % largest, static_cast<uint8_t>(1 + random() % 3)};
}

float Value(int rank, size_t call, size_t element) {
  return static_cast<float>((static_cast<size_t>(rank) + 1) * (call % 97 + 1) + element % 5);
}

float Expected(const Call& call, int rank, int n, size_t index, size_t element) {
  if (call.collective == Collective::kAllGather) {
    return Value(static_cast<int>(element / call.count), index, element % call.count);
  }
  const size_t at =
      call.collective == Collective::kReduceScatter ? static_cast<size_t>(rank) * call.count : 0;
  float sum = 0;
  for (int from = 0; from < n; ++from) sum += Value(from, index, at + element);
  return sum;
}

void RunCall(const std::shared_ptr<Communicator>& communicator, const Call& call, size_t index) {
  const int n = communicator->n_ranks();
  const int rank = communicator->rank();
  const size_t blocks = static_cast<size_t>(n);
  std::vector<float> send(call.count * (call.collective == Collective::kReduceScatter ? blocks : 1));
  std::vector<float> recv(call.count * (call.collective == Collective::kAllGather ? blocks : 1));
  for (size_t i = 0; i < send.size(); ++i) send[i] = Value(rank, index, i);
  const CollectiveOperation operation{.collective = call.collective,
                                      .send = reinterpret_cast<std::byte*>(send.data()),
                                      .recv = reinterpret_cast<std::byte*>(recv.data()),
                                      .count = call.count,
                                      .data_type = DataType::kFloat32,
                                      .config = {Algorithm::kNvls, Protocol::kSimple, call.channels}};
  const CommunicatorPlan plan{communicator, {operation}, {}, {}};
  ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
  for (size_t i = 0; i < recv.size(); ++i) {
    ASSERT_EQ(recv[i], Expected(call, rank, n, index, i))
        << "call " << index << ", rank " << rank << " of " << n << ", " << Name(call.collective) << " of "
        << call.count << " elements, element " << i;
  }
}

class CarriedCalls : public ::testing::TestWithParam<int> {};

TEST_P(CarriedCalls, RanksThatRunAheadOverwriteNothing) {
  const int n = GetParam();
  const auto communicators = MakeCommunicators(n);
  SpawnThreads(n, [&](int rank) {
    std::mt19937_64 agreed(42);
    std::mt19937_64 own(static_cast<uint64_t>(rank));
    const auto calls = static_cast<size_t>(Rounds(400));
    for (size_t index = 0; index < calls && !::testing::Test::HasFatalFailure(); ++index) {
      // A random rank is late in each call.
      for (uint64_t yields = own() % 4; yields > 0; --yields) std::this_thread::yield();
      RunCall(communicators[static_cast<size_t>(rank)], NextCall(agreed, n), index);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CarriedCalls, ::testing::Values(2, 3, 5));

}  // namespace
}  // namespace dynamiccl::hostccl
