// SPDX-License-Identifier: Apache-2.0
// Repeated small calls. A call that runs by a cached plan gives the same bits as a newly planned call. A call
// that differs in any argument gets a plan of its own. So does a call for which the planner has changed the
// configuration.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "src/hostccl/api_call.h"
#include "src/hostccl/carried_call.h"
#include "src/hostccl/group_plan.h"
#include "tests/src/hostccl/make_communicators.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/rounds.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::MakeCommunicators;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::Rounds;
using dynamiccl::testing::SpawnThreads;

// One rank as a program sees it, with a handle and a stream.
class Rank {
 public:
  explicit Rank(const std::shared_ptr<Communicator>& communicator) : handle_(NewHandle(true)) {
    handle_->communicator = communicator;
    EXPECT_EQ(hostcclStreamCreate(&stream_), ncclSuccess);
  }
  Rank(const Rank&) = delete;
  ~Rank() {
    hostcclStreamDestroy(stream_);
    FreeHandle(handle_);
  }

  // Issues the call through the API and waits for its end.
  ncclResult_t Call(const CollectiveOperation& operation) {
    CollectiveArguments arguments{.collective = operation.collective,
                                  .send = operation.send,
                                  .recv = operation.recv,
                                  .count = operation.count,
                                  .data_type = static_cast<ncclDataType_t>(operation.data_type),
                                  .op = static_cast<ncclRedOp_t>(operation.op),
                                  .comm = handle_,
                                  .stream = stream_};
    const ncclResult_t issued = CallCollective(arguments);
    const ncclResult_t ended = hostcclStreamSynchronize(stream_);
    return issued != ncclSuccess ? issued : ended;
  }
  PlanCache& plans() { return handle_->communicator->plan_cache(); }
  Communicator& communicator() { return *handle_->communicator; }
  ncclComm_t handle() { return handle_; }
  cudaStream_t stream() { return stream_; }

 private:
  ncclComm_t handle_;
  cudaStream_t stream_ = nullptr;
};

// Calls `body` on one thread for each rank.
template <typename Body>
void ForEachRank(int n, Body body) {
  const auto communicators = MakeCommunicators(n);
  SpawnThreads(n, [&](int number) {
    Rank rank(communicators[static_cast<size_t>(number)]);
    body(rank, number);
  });
}

// Small calls, of which many are alike. A seed gives the same calls on all ranks. Data and buffers differ
// each time.
class AlikeCalls {
 public:
  RandomCall Next() {
    constexpr Collective kOnePass[] = {Collective::kAllReduce, Collective::kAllGather,
                                       Collective::kReduceScatter};
    constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kBfloat16};
    constexpr size_t kCounts[] = {7, 257};
    RandomCall call;
    call.operation.collective = kOnePass[Below(3)];
    call.operation.data_type = kTypes[Below(2)];
    call.operation.count = kCounts[Below(2)];
    call.in_place = Below(2) == 0;
    call.misalignment = Below(9);
    call.data_seed = random_();
    return call;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }

  std::mt19937_64 random_{5};
};

class RepeatedCalls : public ::testing::TestWithParam<int> {};

TEST_P(RepeatedCalls, GiveTheReferencesResult) {
  const int n = GetParam();
  ::setenv("NCCL_ALGO", "NVLS", 1);  // With two ranks the model prefers the ring for some of these calls.
  ForEachRank(n, [&](Rank& rank, int number) {
    AlikeCalls calls;
    const auto rounds = static_cast<size_t>(Rounds(1500));
    for (size_t round = 0; round < rounds && !::testing::Test::HasFatalFailure(); ++round) {
      const RandomCall call = calls.Next();
      const CallBuffers buffers(call, number, n);
      ASSERT_EQ(rank.Call(buffers.Operation()), ncclSuccess);
      ASSERT_EQ(buffers.FirstMismatch(), -1) << "rank " << number << ": " << call.Describe();
    }
    EXPECT_EQ(rank.plans().runs(), rounds);
    EXPECT_GT(rank.plans().runs(), 2 * rank.plans().kept()) << "calls that repeat need no new plan";
  });
  ::unsetenv("NCCL_ALGO");
}

// The reference is a launch that is planned anew and runs as lanes.
TEST_P(RepeatedCalls, GiveTheBitsOfAPlannedLaunch) {
  const int n = GetParam();
  ForEachRank(n, [&](Rank& rank, int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::vector<float> send(300);
    for (int round = 0; round < Rounds(200); ++round) {
      for (float& value : send) value = static_cast<float>(random()) * 1e-3F;
      std::vector<float> kept(300);
      std::vector<float> planned(300);
      CollectiveOperation operation{.send = reinterpret_cast<std::byte*>(send.data()),
                                    .recv = reinterpret_cast<std::byte*>(kept.data()),
                                    .count = send.size()};
      ASSERT_EQ(rank.Call(operation), ncclSuccess);
      operation.recv = reinterpret_cast<std::byte*>(planned.data());
      ASSERT_EQ(ChooseConfigs(rank.communicator(), {&operation, 1}), ncclSuccess);
      const std::shared_ptr<Communicator> communicator = rank.handle()->communicator;
      const CommunicatorPlan plan{communicator, {operation}, {}, {}};
      ASSERT_EQ(RunLaunch({&plan, 1}), ncclSuccess);
      ASSERT_EQ(kept, planned) << "round " << round;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RepeatedCalls, ::testing::Values(2, 3, 5));

// One of several calls. Each differs from the first call in one member.
struct Kind {
  ncclDataType_t type = ncclFloat;
  ReduceOp op = ReduceOp::kSum;
  size_t count = 64;
};

TEST(PlanCache, EachKindOfCallHasItsOwn) {
  ForEachRank(2, [&](Rank& rank, int /*number*/) {
    const Kind kinds[] = {
        {}, {.count = 65}, {.op = ReduceOp::kMax}, {.type = ncclInt32}, {.op = ReduceOp::kAvg}};
    std::vector<float> send(65, 1);
    std::vector<float> recv(65);
    size_t made = 0;
    for (const Kind& kind : kinds) {
      const CollectiveOperation operation{.send = reinterpret_cast<std::byte*>(send.data()),
                                          .recv = reinterpret_cast<std::byte*>(recv.data()),
                                          .count = kind.count,
                                          .data_type = static_cast<DataType>(kind.type),
                                          .op = kind.op};
      for (int repeat = 0; repeat < 3; ++repeat) ASSERT_EQ(rank.Call(operation), ncclSuccess);
      EXPECT_EQ(rank.plans().kept(), ++made);
    }
    // A call on another buffer uses the same plan, because the data travel with the announcement.
    std::vector<float> other(65);
    const CollectiveOperation moved{.send = reinterpret_cast<std::byte*>(send.data()),
                                    .recv = reinterpret_cast<std::byte*>(other.data()),
                                    .count = 65};
    ASSERT_EQ(rank.Call(moved), ncclSuccess);
    EXPECT_EQ(other.back(), 2);
    EXPECT_EQ(rank.plans().kept(), made);
  });
}

TEST(PlanCache, LargeAndRootedCallsHaveNone) {
  ForEachRank(2, [&](Rank& rank, int /*number*/) {
    std::vector<float> data(1 << 16, 1);
    CollectiveOperation operation{.send = reinterpret_cast<std::byte*>(data.data()),
                                  .recv = reinterpret_cast<std::byte*>(data.data()),
                                  .count = data.size()};
    ASSERT_EQ(rank.Call(operation), ncclSuccess);
    operation.count = 16;
    operation.collective = Collective::kBroadcast;
    ASSERT_EQ(rank.Call(operation), ncclSuccess);
    EXPECT_EQ(rank.plans().kept(), 0U);
  });
}

// A wrong call is refused, even after many correct calls with the same arguments.
TEST(PlanCache, RefusesWhatTheOrdinaryPathRefuses) {
  ForEachRank(2, [&](Rank& rank, int /*number*/) {
    std::vector<float> data(64, 1);
    CollectiveOperation operation{.send = reinterpret_cast<std::byte*>(data.data()),
                                  .recv = reinterpret_cast<std::byte*>(data.data()),
                                  .count = data.size()};
    for (int repeat = 0; repeat < 3; ++repeat) ASSERT_EQ(rank.Call(operation), ncclSuccess);
    const size_t runs = rank.plans().runs();
    operation.send = nullptr;
    EXPECT_EQ(rank.Call(operation), ncclInvalidArgument);
    operation.send = operation.recv;
    rank.communicator().Fail(ErrorKind::kPeerFailed, "for the test");
    EXPECT_EQ(rank.Call(operation), ncclRemoteError);
    EXPECT_EQ(rank.plans().runs(), runs);
  });
}

// The communicator is interrupted before a queued call runs. The call must not announce its data, which would
// overwrite data that a peer has yet to read.
TEST(PlanCache, AnInterruptedRankAnnouncesNothing) {
  ForEachRank(2, [&](Rank& rank, int number) {
    if (number != 0) return;
    std::vector<float> data(64, 1);
    const CollectiveOperation operation{.send = reinterpret_cast<std::byte*>(data.data()),
                                        .recv = reinterpret_cast<std::byte*>(data.data()),
                                        .count = data.size(),
                                        .config = {Algorithm::kNvls, Protocol::kSimple, 1}};
    const CachedPlan* const plan = PlanInCache(rank.communicator(), operation);
    ASSERT_NE(plan, nullptr);
    rank.communicator().Interrupt();
    RunCached(rank.handle()->communicator, *plan, operation.send, operation.recv, *FindStream(rank.stream()));
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream()), ncclRemoteError);
    for (const Parcel& parcel : rank.communicator().header(0).parcels[0]) EXPECT_EQ(parcel.announced, 0U);
  });
}

// Changes its answer from some call on, as a tuner may: another number of channels, or another algorithm.
class ChangingPlanner final : public Planner {
 public:
  PlanResult<CollectiveConfig> Choose(const PlannedBatch&) override { return Answer(asked_++); }
  PlanResult<size_t> ChunkBytes(const ChunkQuestion&) override { return 0; }
  float Microseconds(const PlannedBatch&, const CollectiveConfig&) const override { return 0; }
  void LogScheduled(Collective, uint64_t, const CollectiveConfig&) const override {}
  int channels() const override { return 4; }
  void Finalize() override {}

  static CollectiveConfig Answer(int call) {
    if (call < 10) return {Algorithm::kNvls, Protocol::kSimple, 1};
    if (call < 20) return {Algorithm::kNvls, Protocol::kSimple, 3};
    if (call < 30) return {Algorithm::kRing, Protocol::kLL, 2};
    return {Algorithm::kNvls, Protocol::kSimple, 1};
  }
  int asked() const { return asked_; }

 private:
  int asked_ = 0;
};

TEST(PlanCache, FollowsAPlannerThatChangesItsMind) {
  ForEachRank(2, [&](Rank& rank, int number) {
    auto owned = std::make_unique<ChangingPlanner>();
    const ChangingPlanner& planner = *owned;
    rank.communicator().set_planner(std::move(owned));
    std::vector<float> send(500);
    for (int call = 0; call < 40; ++call) {
      for (size_t i = 0; i < send.size(); ++i)
        send[i] = static_cast<float>(number + call + static_cast<int>(i));
      std::vector<float> recv(send.size());
      ASSERT_EQ(rank.Call({.send = reinterpret_cast<std::byte*>(send.data()),
                           .recv = reinterpret_cast<std::byte*>(recv.data()),
                           .count = send.size()}),
                ncclSuccess);
      for (size_t i = 0; i < recv.size(); ++i) {
        ASSERT_EQ(recv[i], static_cast<float>(2 * (call + static_cast<int>(i)) + 1)) << "call " << call;
      }
    }
    EXPECT_EQ(planner.asked(), 40) << "a tuner is asked for each call";
    EXPECT_EQ(rank.plans().runs(), 30U) << "all but the calls of the ring";
    EXPECT_EQ(rank.plans().kept(), 3U);
  });
}

// The peer does not join the second call. The caller returns, and the stream reports the error after Abort.
TEST(PlanCache, AbortEndsACallWhosePeerNeverComes) {
  const auto communicators = MakeCommunicators(2);
  Rank first(communicators[0]);
  Rank second(communicators[1]);
  std::vector<float> data[2] = {std::vector<float>(64, 1), std::vector<float>(64, 1)};
  const auto operation = [&](size_t rank) {
    auto* const bytes = reinterpret_cast<std::byte*>(data[rank].data());
    return CollectiveOperation{.send = bytes, .recv = bytes, .count = data[rank].size()};
  };
  std::thread peer([&] { ASSERT_EQ(second.Call(operation(1)), ncclSuccess); });
  ASSERT_EQ(first.Call(operation(0)), ncclSuccess);
  peer.join();
  std::atomic<bool> issued{false};
  std::thread aborter([&] {
    while (!issued) std::this_thread::yield();
    communicators[0]->Abort();
  });
  issued = true;
  EXPECT_EQ(first.Call(operation(0)), ncclRemoteError);
  aborter.join();
}

}  // namespace
}  // namespace dynamiccl::hostccl
