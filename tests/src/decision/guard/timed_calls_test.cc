// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/timed_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

namespace dynamiccl {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

DecidedCall Call(uint64_t number, bool timed = true) {
  DecidedCall call;
  call.number = number;
  call.key.size_class.index = 40;
  call.timed = timed;
  call.issued_ns = 1000;
  return call;
}

std::vector<CallTime> Time(uint64_t number, int64_t ns) {
  return {{number, Collective::kAllReduce, ns}};
}

class TimedCallsTest : public ::testing::Test {
 protected:
  // Returns the time of the next call, or -2 if the call still waits for its time.
  int64_t Next(int64_t now_ns = 2000) {
    const auto call = calls_.Next(now_ns);
    if (!call) return -2;
    skew_ns_ = call->skew_ns;
    return call->transfer_ns;
  }

  TimedCalls calls_{3};
  int64_t skew_ns_ = -1;
};

TEST_F(TimedCallsTest, ACallTookWhatItTookOnTheRankThatWaitedLeast) {
  calls_.Add(Call(7));
  calls_.AddTimes(0, Time(7, 900));
  calls_.AddTimes(2, Time(7, 500));
  EXPECT_EQ(Next(), -2);
  calls_.AddTimes(1, Time(7, 700));
  const auto call = calls_.Next(2000);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->transfer_ns, 500);
  EXPECT_EQ(call->compared_ns(), 700) << "the median: one rank that is done early is no merit";
  EXPECT_EQ(call->skew_ns, 400);
}

TEST_F(TimedCallsTest, WhatTheLstmRecognisedComesWithTheCall) {
  DecidedCall call = Call(7, false);
  call.structure_changes = 3;
  call.stage = ZeroStage::kStage2;
  calls_.Add(call);
  const auto next = calls_.Next(2000);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->structure_changes, 3u);
  EXPECT_EQ(next->stage, ZeroStage::kStage2);
}

std::vector<CallTime> Stamp(uint64_t number, int64_t begun_ns) {
  return {{number, Collective::kAllReduce, 0, begun_ns}};
}

TEST_F(TimedCallsTest, AStampedCallWaitsForItsStampFromAnyRank) {
  DecidedCall call = Call(7, false);
  call.stamped = true;
  calls_.Add(call);
  EXPECT_EQ(Next(), -2);
  calls_.AddTimes(-1, Stamp(7, 5000));  // A rank that reports no times may be in the leader's process.
  const auto stamped = calls_.Next(2000);
  ASSERT_TRUE(stamped);
  EXPECT_EQ(stamped->begun_ns, 5000);
  EXPECT_EQ(stamped->transfer_ns, -1) << "a stamp is no time";
  calls_.Add(Call(8, false));
  EXPECT_EQ(calls_.Next(2000)->begun_ns, -1);
}

TEST_F(TimedCallsTest, AStampIsNoTimeOfATimedCall) {
  DecidedCall call = Call(7);
  call.stamped = true;
  calls_.Add(call);
  calls_.AddTimes(1, Stamp(7, 5000));
  EXPECT_EQ(Next(), -2) << "its times are still to come";
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 100));
  const auto both = calls_.Next(2000);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->begun_ns, 5000);
  EXPECT_EQ(both->transfer_ns, 100);
}

TEST_F(TimedCallsTest, AStampIsLostWhenALaterOneIsThereOrAfterAWhile) {
  DecidedCall call = Call(7, false);
  call.stamped = true;
  calls_.Add(call);
  calls_.AddTimes(1, Stamp(9, 5000));
  ASSERT_TRUE(calls_.Next(2000));
  call.number = 11;
  calls_.Add(call);
  EXPECT_EQ(Next(59 * kSecond), -2) << "a step may last as long";
  EXPECT_EQ(Next(61 * kSecond), -1);
}

TEST_F(TimedCallsTest, AStampIsNotWaitedForWhileThousandsOfCallsWait) {
  DecidedCall call = Call(7, false);
  call.stamped = true;
  calls_.Add(call);
  for (uint64_t number = 8; number < 7 + 4096; ++number) calls_.Add(Call(number, false));
  EXPECT_EQ(Next(), -2);
  calls_.Add(Call(7 + 4096, false));
  EXPECT_EQ(Next(), -1);
}

TEST_F(TimedCallsTest, TimesMayComeBeforeTheLeadersOwnDecision) {
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 100 + reporter));
  EXPECT_EQ(Next(), -2);
  calls_.Add(Call(7));
  EXPECT_EQ(Next(), 100);
}

TEST_F(TimedCallsTest, CallsComeInTheirOrderAndThoseThatAreNotTimedWaitForThoseBefore) {
  calls_.Add(Call(7));
  calls_.Add(Call(8, false));
  EXPECT_EQ(Next(), -2);
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 50));
  EXPECT_EQ(Next(), 50);
  EXPECT_EQ(Next(), -1);
  EXPECT_EQ(Next(), -2);
}

TEST_F(TimedCallsTest, ALostTimeIsNotWaitedForOnceTheRankTellsOfMuchLaterCalls) {
  calls_.Add(Call(7));
  calls_.AddTimes(0, Time(7, 60));
  calls_.AddTimes(1, Time(7, 70));
  calls_.AddTimes(2, Time(14, 10));
  EXPECT_EQ(Next(), -2);
  calls_.AddTimes(2, Time(15, 10));
  EXPECT_EQ(Next(), 60);
  EXPECT_EQ(skew_ns_, -1) << "one rank's arrival is not known";
}

TEST_F(TimedCallsTest, NorForLongerThanAHostRunsAhead) {
  calls_.Add(Call(7));
  calls_.AddTimes(1, Time(7, 70));
  EXPECT_EQ(Next(4 * kSecond), -2);
  EXPECT_EQ(Next(6 * kSecond), 70);
  calls_.Add(Call(8));
  EXPECT_EQ(Next(6 * kSecond), -1) << "nothing is known";
}

TEST_F(TimedCallsTest, CapturedCallsHaveNoTimes) {
  DecidedCall captured = Call(7);
  captured.captured = true;
  calls_.Add(captured);
  EXPECT_EQ(Next(), -1);
}

TEST_F(TimedCallsTest, ABatchTakesAsLongAsItsLongestCollective) {
  DecidedCall batch = Call(7);
  batch.events = 2;
  calls_.Add(batch);
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 30));
  EXPECT_EQ(Next(), -2);
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 80));
  EXPECT_EQ(Next(), 80);
}

TEST_F(TimedCallsTest, OneKeyAskedTwiceIsOneCallAndTwoKeysAreNotTimed) {
  calls_.Add(Call(7));
  calls_.Add(Call(7));
  DecidedCall other = Call(8);
  calls_.Add(other);
  other.key.size_class.index = 41;
  calls_.Add(other);
  for (const uint64_t call : {7, 8}) {
    for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(call, 50));
  }
  EXPECT_EQ(Next(), 50);
  EXPECT_EQ(Next(), -1);
  EXPECT_EQ(Next(), -1);
  EXPECT_EQ(Next(), -2);
}

TEST_F(TimedCallsTest, StrangersAndLateTimesChangeNothing) {
  calls_.AddTimes(3, Time(7, 10));
  calls_.AddTimes(-1, Time(7, 10));
  calls_.Add(Call(7, false));
  calls_.Add(Call(9));
  EXPECT_EQ(Next(), -1);
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(7, 10));
  for (int reporter = 0; reporter < 3; ++reporter) calls_.AddTimes(reporter, Time(9, 20));
  EXPECT_EQ(Next(), 20);
}

// Messages have any size and delay, and keep the order of each rank. Every call must come out once, in order,
// with its time.
TEST(TimedCallsRandom, EveryCallGetsItsOwnTime) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int reporters = 1 + static_cast<int>(random() % kMaxReporters);
    TimedCalls calls(reporters);
    constexpr uint64_t kCalls = 500;
    std::vector<uint64_t> told(static_cast<size_t>(reporters));
    uint64_t added = 0;
    uint64_t next = 0;
    const auto timed = [](uint64_t call) { return call % 7 < 3; };
    while (next < kCalls) {
      const size_t who = random() % (told.size() + 1);
      if (who == told.size()) {
        if (added < kCalls) calls.Add(Call(added, timed(added)));
        ++added;
      } else {
        for (uint64_t n = random() % 20; n > 0 && told[who] < kCalls; --n, ++told[who]) {
          const auto ns = static_cast<int64_t>(1000 + told[who] * 100 + who);
          if (timed(told[who])) calls.AddTimes(static_cast<int>(who), Time(told[who], ns));
        }
      }
      while (const auto call = calls.Next(2000)) {
        const auto least = timed(next) ? static_cast<int64_t>(1000 + next * 100) : -1;
        ASSERT_EQ(call->transfer_ns, least);
        ++next;
      }
    }
    EXPECT_EQ(calls.waiting(), 0u);
  }
}

TEST(Reporters, AreAtMostSixteenAndNumberedFromTheFirst) {
  for (int n_ranks = 1; n_ranks < 200; ++n_ranks) {
    int reporters = 0;
    for (int rank = 0; rank < n_ranks; ++rank) {
      const int reporter = ReporterOf(rank, n_ranks);
      EXPECT_EQ(reporter < 0 ? reporters : reporter, reporters);
      reporters += reporter < 0 ? 0 : 1;
    }
    EXPECT_EQ(reporters, ReportersOf(n_ranks)) << n_ranks;
    EXPECT_LE(reporters, kMaxReporters);
    EXPECT_GE(reporters, std::min(n_ranks, kMaxReporters / 2)) << n_ranks;
  }
}

TEST(CallFeed, LosesWhatDoesNotFitAndCountsIt) {
  CallFeed feed;
  for (uint64_t call = 0; call < 5000; ++call) feed.Push(Call(call));
  EXPECT_EQ(feed.lost(), 5000u - 2048u);
  DecidedCall call;
  uint64_t expected = 0;
  while (feed.Pop(call)) EXPECT_EQ(call.number, expected++);
  EXPECT_EQ(expected, 2048u);
  feed.Push(Call(9));
  ASSERT_TRUE(feed.Pop(call));
  EXPECT_EQ(call.number, 9u);
}

TEST(CallFeed, GoesFromOneThreadToAnotherInOrder) {
  CallFeed feed;
  constexpr uint64_t kCalls = 200'000;
  std::thread writer([&] {
    for (uint64_t call = 0; call < kCalls; ++call) feed.Push(Call(call));
  });
  uint64_t got = 0;
  uint64_t last = 0;
  DecidedCall call;
  while (got + feed.lost() < kCalls) {
    if (!feed.Pop(call)) continue;
    ASSERT_TRUE(got == 0 || call.number > last);
    ++got;
    last = call.number;
  }
  writer.join();
}

}  // namespace
}  // namespace dynamiccl
