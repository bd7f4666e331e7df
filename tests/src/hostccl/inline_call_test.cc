// SPDX-License-Identifier: Apache-2.0
// Calls that run on the calling thread give the same results, order and errors as calls through the stream,
// and a peer never blocks the caller. In most tests one thread drives several ranks. The first rank's call
// then finds no peer, so it must give up and hand its half-run launch to the stream.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "src/hostccl/group.h"
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

// Sets an environment variable for the lifetime of this object.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// Owns a stream.
class Stream {
 public:
  Stream() { EXPECT_EQ(hostcclStreamCreate(&handle_), ncclSuccess); }
  ~Stream() { hostcclStreamDestroy(handle_); }
  Stream(const Stream&) = delete;

  cudaStream_t handle() const { return handle_; }
  ncclResult_t Synchronize() const { return hostcclStreamSynchronize(handle_); }

 private:
  cudaStream_t handle_ = nullptr;
};

CollectiveOperation Sum(std::vector<float>& data) {
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  return {.send = bytes, .recv = bytes, .count = data.size()};
}

// Tries to run the call inline, even if earlier inline attempts failed.
ncclResult_t IssueInline(const std::shared_ptr<Communicator>& communicator, const Stream& stream,
                         const CollectiveOperation& operation) {
  communicator->inline_gauge() = {};
  return Issue(PendingCollective{communicator, nullptr, stream.handle(), operation});
}

ncclResult_t IssueSum(const std::shared_ptr<Communicator>& communicator, const Stream& stream,
                      std::vector<float>& data) {
  return IssueInline(communicator, stream, Sum(data));
}

// Returns true if the communicator's last launch ended on the calling thread.
bool RanInline(const std::shared_ptr<Communicator>& communicator) {
  return communicator->last_launch().completion == nullptr;
}

TEST(InlineCall, RunsOnTheCallingThreadUnlessSwitchedOff) {
  for (const bool on : {true, false}) {
    const ScopedVariable setting("HOSTCCL_INLINE", on ? "1" : "0");
    const auto alone = MakeCommunicators(1);
    const Stream stream;
    std::vector<float> data(10, 3);
    std::vector<float> result(10);
    CollectiveOperation operation = Sum(data);
    operation.recv = reinterpret_cast<std::byte*>(result.data());
    ASSERT_EQ(Issue(PendingCollective{alone[0], nullptr, stream.handle(), operation}), ncclSuccess);
    EXPECT_EQ(RanInline(alone[0]), on);
    EXPECT_EQ(stream.Synchronize(), ncclSuccess);
    EXPECT_EQ(result, data);
  }
}

TEST(InlineCall, LargeCallsAndBusyStreamsUseTheStreamsThread) {
  const auto alone = MakeCommunicators(1);
  const Stream stream;
  std::vector<float> large(1 << 20, 1);
  ASSERT_EQ(IssueSum(alone[0], stream, large), ncclSuccess);
  EXPECT_FALSE(RanInline(alone[0]));
  EXPECT_EQ(stream.Synchronize(), ncclSuccess);
  std::atomic<bool> release{false};
  const auto wait = [](void* data) { static_cast<std::atomic<bool>*>(data)->wait(false); };
  hostcclLaunchHostFunc(stream.handle(), wait, &release);
  std::vector<float> small(10, 1);
  ASSERT_EQ(IssueSum(alone[0], stream, small), ncclSuccess);
  EXPECT_EQ(hostcclStreamQuery(stream.handle()), ncclInProgress);
  EXPECT_FALSE(RanInline(alone[0]));
  release = true;
  release.notify_all();
  EXPECT_EQ(stream.Synchronize(), ncclSuccess);
}

class HandedOver : public ::testing::TestWithParam<const char*> {};

// One thread issues each rank's call in turn. The calls are of all kinds, and some have several chunks.
TEST_P(HandedOver, CallsGiveTheRightData) {
  const ScopedVariable protocol("NCCL_PROTO", GetParam());
  for (const int n : {2, 3}) {
    const auto ranks = MakeCommunicators(n);
    const std::vector<Stream> streams(static_cast<size_t>(n));
    RandomCalls calls(static_cast<uint64_t>(n), n);
    for (int round = 0; round < Rounds(60); ++round) {
      const RandomCall call = calls.Next();
      std::vector<std::unique_ptr<CallBuffers>> buffers;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        buffers.push_back(std::make_unique<CallBuffers>(call, static_cast<int>(rank), n));
        ASSERT_EQ(IssueInline(ranks[rank], streams[rank], buffers.back()->Operation()), ncclSuccess);
      }
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        ASSERT_EQ(streams[rank].Synchronize(), ncclSuccess);
        ASSERT_EQ(buffers[rank]->FirstMismatch(), -1) << "rank " << rank << ": " << call.Describe();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, HandedOver, ::testing::Values("LL", "Simple"));

TEST(InlineGauge, AttemptsBecomeRareWhileTheyFail) {
  InlineGauge gauge;
  int attempts = 0;
  for (int call = 0; call < 1000; ++call) {
    if (!gauge.Try()) continue;
    ++attempts;
    gauge.NoteGivenUp();
  }
  EXPECT_LT(attempts, 25);
  int skipped = 0;
  while (!gauge.Try()) ++skipped;
  gauge.NoteDone();
  EXPECT_LT(skipped, 64);
  EXPECT_TRUE(gauge.Try());
  gauge.NoteGivenUp();
  EXPECT_TRUE(gauge.Try()) << "one late peer is no rule";
}

// Host functions and events behind a handed-over call wait for that call.
TEST(HandedOverCall, KeepsItsPlaceInTheStream) {
  const auto ranks = MakeCommunicators(2);
  const Stream streams[2];
  const Stream other;
  hostcclEvent_t event = nullptr;
  ASSERT_EQ(hostcclEventCreate(&event), ncclSuccess);
  for (int round = 1; round <= 50; ++round) {
    std::vector<float> data[2] = {std::vector<float>(100, 1), std::vector<float>(100, 2)};
    float seen[2] = {0, 0};
    struct Look {
      const std::vector<float>* data;
      float* seen;
    };
    Look looks[2] = {{&data[0], &seen[0]}, {&data[0], &seen[1]}};
    const auto look = [](void* what) {
      const auto* const it = static_cast<Look*>(what);
      *it->seen = it->data->back();
    };
    ASSERT_EQ(IssueSum(ranks[0], streams[0], data[0]), ncclSuccess);
    EXPECT_EQ(hostcclStreamQuery(streams[0].handle()), ncclInProgress);
    hostcclLaunchHostFunc(streams[0].handle(), look, &looks[0]);
    ASSERT_EQ(hostcclEventRecord(event, streams[0].handle()), ncclSuccess);
    EXPECT_EQ(hostcclEventQuery(event), ncclInProgress);
    ASSERT_EQ(hostcclStreamWaitEvent(other.handle(), event), ncclSuccess);
    hostcclLaunchHostFunc(other.handle(), look, &looks[1]);
    ASSERT_EQ(IssueSum(ranks[1], streams[1], data[1]), ncclSuccess);
    ASSERT_EQ(other.Synchronize(), ncclSuccess);
    ASSERT_EQ(streams[1].Synchronize(), ncclSuccess);
    EXPECT_EQ(seen[0], 3);
    EXPECT_EQ(seen[1], 3);
    EXPECT_EQ(hostcclEventQuery(event), ncclSuccess);
  }
  hostcclEventDestroy(event);
}

// A call on another stream of the same communicator runs after the handed-over call.
TEST(HandedOverCall, KeepsTheCommunicatorsOrderAcrossStreams) {
  const auto ranks = MakeCommunicators(2);
  const Stream first[2];
  const Stream second[2];
  for (int round = 0; round < 50; ++round) {
    std::vector<float> data[2] = {std::vector<float>(50, 1), std::vector<float>(50, 1)};
    for (size_t rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(IssueSum(ranks[rank], first[rank], data[rank]), ncclSuccess);
      ASSERT_EQ(IssueSum(ranks[rank], second[rank], data[rank]), ncclSuccess);
    }
    for (size_t rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(second[rank].Synchronize(), ncclSuccess);
      EXPECT_EQ(data[rank].back(), 4) << "round " << round;
    }
  }
}

// Rank 0 uses A then B, and rank 1 uses B then A. Each caller must leave its first call to reach the second.
TEST(OppositeOrder, OfTwoCommunicatorsCannotDeadlock) {
  const auto a = MakeCommunicators(2);
  const auto b = MakeCommunicators(2);
  SpawnThreads(2, [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    const Stream stream_a;
    const Stream stream_b;
    for (int round = 0; round < 300; ++round) {
      std::vector<float> in_a(64, 1);
      std::vector<float> in_b(64, 10);
      const bool a_first = rank == 0;
      ASSERT_EQ(a_first ? IssueSum(a[r], stream_a, in_a) : IssueSum(b[r], stream_b, in_b), ncclSuccess);
      ASSERT_EQ(a_first ? IssueSum(b[r], stream_b, in_b) : IssueSum(a[r], stream_a, in_a), ncclSuccess);
      ASSERT_EQ(stream_a.Synchronize(), ncclSuccess);
      ASSERT_EQ(stream_b.Synchronize(), ncclSuccess);
      ASSERT_EQ(in_a.back(), 2);
      ASSERT_EQ(in_b.back(), 20);
    }
  });
}

TEST(OppositeOrder, AnAbortFreesACallerAtAnyMoment) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const auto ranks = MakeCommunicators(2);
    const uint32_t calls_before = random() % 50;
    std::atomic<uint32_t> calls{0};
    std::atomic<int> ended{0};
    std::thread aborter([&] {
      while (calls.load() < calls_before) std::this_thread::yield();
      ranks[0]->Abort();
      ranks[0]->WaitForLaunches();
      ranks[1]->Abort();
    });
    SpawnThreads(2, [&](int rank) {
      const Stream stream;
      std::vector<float> data(64, 1);
      ncclResult_t result = ncclSuccess;
      while (result == ncclSuccess) {
        result = IssueSum(ranks[static_cast<size_t>(rank)], stream, data);
        if (result == ncclSuccess) result = stream.Synchronize();
        if (rank == 0) ++calls;
        if (ranks[static_cast<size_t>(rank)]->aborted()) break;
      }
      ++ended;
    });
    aborter.join();
    EXPECT_EQ(ended, 2) << "calls before the abort: " << calls_before;
  }
}

// Work that other threads enqueue while a caller has claimed the stream runs after the caller's work.
TEST(ClaimedStream, LetsOthersWait) {
  for (const bool hands_over : {false, true}) {
    HostStream stream;
    std::vector<int> order;
    ASSERT_TRUE(stream.TryClaim());
    EXPECT_FALSE(stream.TryClaim());
    EXPECT_FALSE(stream.idle());
    std::thread other([&] {
      stream.Enqueue([&order] {
        order.push_back(2);
        return ncclSuccess;
      });
    });
    other.join();
    const auto recorded = stream.Record();
    EXPECT_FALSE(recorded->done());
    if (hands_over) {
      stream.HandOver([&order] {
        order.push_back(1);
        return ncclRemoteError;
      });
    } else {
      order.push_back(1);
      stream.Release(ncclRemoteError);
    }
    recorded->Wait();
    while (!stream.idle()) std::this_thread::yield();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_EQ(stream.TakeError(), ncclRemoteError);
    EXPECT_TRUE(stream.TryClaim());
    stream.Release(ncclSuccess);
    EXPECT_TRUE(stream.Record()->done());
  }
}

// Any thread that synchronizes may run queued work, so the stream's thread and several callers compete for
// it. Every piece of work runs once, alone, in the order of the thread that issued it. It ends before the
// synchronization of that thread returns.
TEST(Synchronize, RunsQueuedWorkInOrderAndAlone) {
  HostStream stream;
  constexpr int kThreads = 3;
  int total = 0;              // Only work of the stream accesses it.
  int latest[kThreads] = {};  // The latest number by thread; also only for the stream's work.
  SpawnThreads(kThreads, [&](int thread) {
    int issued = 0;
    for (int round = 0; round < Rounds(300); ++round) {
      for (int piece = 0; piece <= round % 3; ++piece) {
        stream.Enqueue([&total, mine = &latest[thread], number = ++issued] {
          ++total;
          const bool next = ++*mine == number;
          return next ? ncclSuccess : ncclInternalError;
        });
      }
      stream.Synchronize();
      ASSERT_EQ(latest[thread], issued);
    }
  });
  EXPECT_EQ(total, latest[0] + latest[1] + latest[2]);
  EXPECT_EQ(stream.TakeError(), ncclSuccess);
  EXPECT_TRUE(stream.idle());
}

}  // namespace
}  // namespace dynamiccl::hostccl
