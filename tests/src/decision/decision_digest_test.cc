// SPDX-License-Identifier: Apache-2.0
#include "src/decision/decision_digest.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <thread>

namespace dynamiccl {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Decided {
  DecisionKey key{Collective::kAllGather, 4096, 1, Role::kParameterGather};
  CollectiveConfig config{Algorithm::kRing, Protocol::kLL, 4};
  uint32_t version = 1;
};

uint64_t DigestOf(const std::vector<std::vector<Decided>>& calls) {
  DecisionDigest digest;
  for (size_t call = 0; call < kCheckpointCalls; ++call) {
    digest.Begin(call);
    if (call >= calls.size()) continue;
    for (const Decided& each : calls[call]) digest.Add(each.key, each.config, each.version);
  }
  digest.Begin(kCheckpointCalls);
  return digest.CheckpointsAfter(0).at(0).digest;
}

TEST(DecisionDigest, EveryPartOfADecisionCounts) {
  const std::vector<std::function<void(Decided&)>> changes{
      [](Decided& of) { of.key.collective = Collective::kAllReduce; },
      [](Decided& of) { of.key.bytes = 1 << 20; },
      [](Decided& of) { of.key.role = Role::kUnknown; },
      [](Decided& of) { of.config.algorithm = Algorithm::kPat; },
      [](Decided& of) { of.config.protocol = Protocol::kSimple; },
      [](Decided& of) { of.config.channels = 0; },
      [](Decided& of) { of.config = kLeaveNcclAlone; },
      [](Decided& of) { of.version = 2; },
  };
  const uint64_t without = DigestOf({{Decided{}}, {Decided{}}});
  EXPECT_EQ(DigestOf({{Decided{}}, {Decided{}}}), without);
  for (const auto& change : changes) {
    Decided changed;
    change(changed);
    EXPECT_NE(DigestOf({{Decided{}}, {changed}}), without);
    EXPECT_NE(DigestOf({{changed}, {Decided{}}}), without);
  }
}

TEST(DecisionDigest, CallNumbersAndOrderCount) {
  Decided other;
  other.config.protocol = Protocol::kSimple;
  const uint64_t once = DigestOf({{Decided{}}});
  EXPECT_NE(DigestOf({{}, {Decided{}}}), once);
  EXPECT_NE(DigestOf({{Decided{}}, {Decided{}}}), once);
  EXPECT_NE(DigestOf({{Decided{}, other}}), DigestOf({{other, Decided{}}}));
}

TEST(DecisionDigest, QuestionAskedAgainIsNoSecondDecision) {
  EXPECT_EQ(DigestOf({{Decided{}, Decided{}}}), DigestOf({{Decided{}}}));
}

TEST(DecisionDigest, RefusedCallThatBeginsAgainWasNotThere) {
  DecisionDigest refused;
  DecisionDigest plain;
  const Decided decided;
  for (uint64_t call = 0; call <= kCheckpointCalls; ++call) {
    for (const uint64_t times : {uint64_t{0}, call % 3}) {
      if (times == 0) continue;
      refused.Begin(call);
      refused.Add({Collective::kReduce, 8 * times, 1, Role::kScalar}, kLeaveNcclAlone, 1);
    }
    for (DecisionDigest* each : {&refused, &plain}) {
      each->Begin(call);
      each->Add(decided.key, decided.config, 1);
    }
  }
  EXPECT_EQ(refused.CheckpointsAfter(0), plain.CheckpointsAfter(0));
}

TEST(DecisionDigest, KeepsTheLastMultipleOfEachPowerOfTwo) {
  DecisionDigest digest;
  for (uint64_t call = 0; call <= 13 * kCheckpointCalls; ++call) digest.Begin(call);
  const auto calls = [&](uint64_t after) {
    std::vector<uint64_t> found;
    for (const DigestCheckpoint& each : digest.CheckpointsAfter(after))
      found.push_back(each.call / kCheckpointCalls);
    return found;
  };
  EXPECT_THAT(calls(0), UnorderedElementsAre(13, 10, 12, 8));
  EXPECT_THAT(calls(10 * kCheckpointCalls), UnorderedElementsAre(13, 12));
  EXPECT_THAT(calls(13 * kCheckpointCalls), IsEmpty());
}

// A reader looks while calls are issued. Each digest it gets must have existed at the call that it names.
TEST(DecisionDigest, IsReadWhileItIsWritten) {
  constexpr uint64_t kCalls = 400 * kCheckpointCalls;
  const auto issue = [](DecisionDigest& digest, auto&& at_call) {
    for (uint64_t call = 0; call <= kCalls; ++call) {
      digest.Begin(call);
      at_call(call);
      digest.Add({Collective::kAllReduce, call * 7919 % 100'000, 1, Role::kUnknown}, kLeaveNcclAlone, 1);
    }
  };
  std::map<uint64_t, uint64_t> expected;
  DecisionDigest alone;
  issue(alone, [&](uint64_t call) {
    for (const DigestCheckpoint& each : alone.CheckpointsAfter(call - 1)) expected[each.call] = each.digest;
  });
  DecisionDigest digest;
  std::atomic<bool> ended{false};
  std::thread issuing([&] {
    issue(digest, [](uint64_t) {});
    ended = true;
  });
  size_t seen = 0;
  for (bool last = false; !last;) {
    last = ended;
    for (const DigestCheckpoint& each : digest.CheckpointsAfter(0)) {
      ASSERT_EQ(each.digest, expected.at(each.call)) << each.call;
      ++seen;
    }
  }
  issuing.join();
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace dynamiccl
