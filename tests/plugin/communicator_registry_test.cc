// SPDX-License-Identifier: Apache-2.0
// Tests communicators that end while threads may be inside their calls.
#include "plugin/runtime/communicator_registry.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "tests/support/test_seed.h"

namespace dynamiccl {
namespace {

ncclComm_t Handle(uintptr_t number) {
  return reinterpret_cast<ncclComm_t>(number * 64);
}

// Adds a communicator. The tests use different handles, because a thread remembers the handle that it found
// last, and assumes that the process has only one registry.
std::weak_ptr<CallFeed> AddWithFeed(CommunicatorRegistry& registry, uintptr_t number) {
  auto communicator = std::make_shared<Communicator>();
  communicator->switching.feed = std::make_shared<CallFeed>();
  const std::weak_ptr<CallFeed> feed = communicator->switching.feed;
  registry.Add(Handle(number), std::move(communicator));
  return feed;
}

TEST(CommunicatorRegistry, WhatIsRemovedGivesBackWhatOnlyCallsNeed) {
  CommunicatorRegistry registry;
  const int thread = 0;
  const auto feed = AddWithFeed(registry, 11);
  Communicator* const communicator = registry.Find(Handle(11));
  ASSERT_TRUE(communicator->in_flight_calls.Enter(&thread));
  communicator->in_flight_calls.Leave();
  if (!InFlightCalls::FenceAllThreads()) GTEST_SKIP() << "this system has no membarrier";
  const auto removed = registry.Remove(Handle(11));
  EXPECT_FALSE(feed.expired()) << "who removed it may need it";
  registry.Free(removed);
  EXPECT_TRUE(feed.expired());
  EXPECT_FALSE(removed->in_flight_calls.Enter(&thread));
}

// NCCL still initialises a non-blocking communicator after the function that creates it has returned.
TEST(CommunicatorRegistry, NonBlockingCommunicatorsThatAreGoneTakeNoMemoryAndStandInNoOnesWay) {
  CommunicatorRegistry registry;
  std::vector<std::weak_ptr<Communicator>> made;
  for (uintptr_t number = 100; number < 400; ++number) {
    auto communicator = std::make_shared<Communicator>();
    communicator->config.blocking = false;
    communicator->identity.info.n_ranks = 2;
    communicator->identity.token = {static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8)};
    made.push_back(communicator);
    registry.Expect(communicator);
    registry.CallReturned();
    registry.Add(Handle(number), std::move(communicator));
    registry.Free(registry.Remove(Handle(number)));
  }
  EXPECT_TRUE(made.front().expired());
  EXPECT_EQ(registry.Claim(2, 1), nullptr);
  EXPECT_FALSE(registry.AmbiguousCandidates(2));
}

TEST(CommunicatorRegistry, WhatACallIsInsideOfIsKeptUntilItHasLeft) {
  if (!InFlightCalls::FenceAllThreads()) GTEST_SKIP() << "this system has no membarrier";
  CommunicatorRegistry registry;
  const int thread = 0;
  const auto feed = AddWithFeed(registry, 21);
  Communicator* const communicator = registry.Find(Handle(21));
  ASSERT_TRUE(communicator->in_flight_calls.Enter(&thread));
  registry.Free(registry.Remove(Handle(21)));
  EXPECT_FALSE(feed.expired());
  communicator->in_flight_calls.Leave();
  AddWithFeed(registry, 22);
  registry.Free(registry.Remove(Handle(22)));
  EXPECT_TRUE(feed.expired());
}

// A communicator is removed while one thread has a group open on it. Another thread has just left a call.
TEST(CommunicatorRegistry, WhatTwoThreadsWereInsideOfIsKept) {
  CommunicatorRegistry registry;
  const int threads[2] = {};
  const auto feed = AddWithFeed(registry, 31);
  Communicator* const communicator = registry.Find(Handle(31));
  ASSERT_TRUE(communicator->in_flight_calls.Enter(&threads[0]));
  ASSERT_TRUE(communicator->in_flight_calls.Enter(&threads[1]));
  communicator->in_flight_calls.Leave();
  registry.Free(registry.Remove(Handle(31)));
  EXPECT_FALSE(feed.expired());
}

// Each thread makes calls on its own communicator. Another thread ends these communicators at random moments.
TEST(CommunicatorRegistry, CallsRunBesideTheEndOfTheirCommunicator) {
  constexpr uintptr_t kThreads = 3;
  constexpr int kGivenUp = 3000;
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE(seed);
  std::minstd_rand random(seed);
  CommunicatorRegistry registry;
  std::array<std::weak_ptr<CallFeed>, kThreads> feeds;
  for (uintptr_t i = 0; i < kThreads; ++i) feeds[i] = AddWithFeed(registry, 40 + i);
  std::atomic<bool> over{false};
  std::atomic<uint64_t> calls{0};
  std::array<std::atomic<uint64_t>, kThreads> turns{};
  std::vector<std::thread> callers;
  for (uintptr_t i = 0; i < kThreads; ++i) {
    callers.emplace_back([&, i] {
      DecidedCall call;
      for (; !over.load(); turns[i].fetch_add(1)) {
        Communicator* const communicator = registry.Find(Handle(40 + i));
        if (communicator == nullptr || !communicator->in_flight_calls.Enter(&call)) continue;
        CallFeed* const feed = communicator->switching.feed.get();
        feed->Push(call);
        feed->Pop(call);
        communicator->in_flight_calls.Leave();
        calls.fetch_add(1);
      }
    });
  }
  // A pointer from Find stays valid for 256 removals, so no thread may pause for that many.
  const auto all_went_on = [&] {
    for (std::atomic<uint64_t>& turn : turns) {
      const uint64_t before = turn.load();
      while (turn.load() < before + 2) std::this_thread::yield();
    }
  };
  size_t not_freed = 0;
  for (int given_up = 0; given_up < kGivenUp; ++given_up) {
    const uintptr_t which = random() % kThreads;
    registry.Free(registry.Remove(Handle(40 + which)));
    not_freed += feeds[which].expired() ? 0 : 1;
    feeds[which] = AddWithFeed(registry, 40 + which);
    if (random() % 4 == 0) std::this_thread::yield();
    if (given_up % 100 == 99) all_went_on();
  }
  while (calls.load() == 0) std::this_thread::yield();
  over.store(true);
  for (std::thread& caller : callers) caller.join();
  if (InFlightCalls::FenceAllThreads()) {
    EXPECT_LT(not_freed, size_t{kGivenUp} / 2);
  }
}

}  // namespace
}  // namespace dynamiccl
