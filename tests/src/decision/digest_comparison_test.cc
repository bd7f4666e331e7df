// SPDX-License-Identifier: Apache-2.0
#include "src/decision/digest_comparison.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace dynamiccl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kLateNs = 2 * kDigestPatienceNs;

TEST(DigestComparison, FindsNothingWhereAllSayTheSame) {
  DigestComparison comparison(3);
  for (uint64_t call = 256; call < 256 * 100; call += 256) {
    for (int rank = 0; rank < 3; ++rank) comparison.AddReport(rank, {call, call * 17}, 0);
    EXPECT_FALSE(comparison.FindDivergence(0));
  }
  EXPECT_FALSE(comparison.FindDivergence(kLateNs));
}

TEST(DigestComparison, NamesTheRankAndTheCalls) {
  DigestComparison comparison(4);
  for (int rank = 0; rank < 4; ++rank) comparison.AddReport(rank, {512, 5}, 0);
  EXPECT_FALSE(comparison.FindDivergence(0));
  for (int rank = 0; rank < 4; ++rank) comparison.AddReport(rank, {1024, rank == 2 ? 7u : 6u}, 0);
  EXPECT_EQ(comparison.FindDivergence(0), (Divergence{512, 1024, {2}, 1, true}));
  EXPECT_EQ(Describe({512, 1024, {2}, 1, true}, {0, 10, 20, 30}),
            "rank 20 decided otherwise than most ranks in calls 512 to 1023");
}

TEST(DigestComparison, NamesAllWhereThereIsNoMost) {
  DigestComparison comparison(2);
  comparison.AddReport(0, {256, 1}, 0);
  comparison.AddReport(1, {256, 2}, 0);
  EXPECT_EQ(comparison.FindDivergence(0), (Divergence{0, 256, {0, 1}, 2, false}));
  EXPECT_EQ(Describe({0, 256, {0, 1}, 2, false}, {0, 1}), "ranks 0, 1 decided differently in calls 0 to 255");
}

// Once most ranks have reported, the majority counts as right. A rank that never reports delays nothing.
TEST(DigestComparison, WaitsForRanksThatHaveNotSpokenButNotForEver) {
  DigestComparison comparison(4);
  for (int rank = 0; rank < 3; ++rank) comparison.AddReport(rank, {256, rank == 0 ? 1u : 2u}, 1000);
  EXPECT_FALSE(comparison.FindDivergence(1000));
  EXPECT_FALSE(comparison.FindDivergence(999 + kDigestPatienceNs));
  EXPECT_EQ(comparison.FindDivergence(1000 + kDigestPatienceNs), (Divergence{0, 256, {0}, 1, true}));
}

TEST(DigestComparison, RankMayBeLateByAnyTime) {
  DigestComparison comparison(3);
  for (int rank = 0; rank < 2; ++rank) comparison.AddReport(rank, {256, 1}, 0);
  EXPECT_FALSE(comparison.FindDivergence(100 * kLateNs));
  comparison.AddReport(2, {256, 2}, 100 * kLateNs);
  EXPECT_EQ(comparison.FindDivergence(100 * kLateNs), (Divergence{0, 256, {2}, 1, true}));
}

// Any number of calls may be open, that is, not yet reported by all ranks.
TEST(DigestComparison, KeepsTheRoundestOfManyOpenCalls) {
  DigestComparison comparison(2);
  for (uint64_t call = 256; call <= 256 * 4096; call += 256) comparison.AddReport(0, {call, 1}, 0);
  comparison.AddReport(1, {256 * 4095, 2}, 0);
  EXPECT_FALSE(comparison.FindDivergence(0)) << "was dropped";
  comparison.AddReport(1, {256 * 2048, 2}, 0);
  EXPECT_EQ(comparison.FindDivergence(0), (Divergence{0, 256 * 2048, {0, 1}, 2, false}));
}

TEST(DigestComparison, RankThatSaysACallAgainDoesNotCountTwice) {
  DigestComparison comparison(2);
  comparison.AddReport(0, {256, 1}, 0);
  comparison.AddReport(0, {256, 2}, 0);
  EXPECT_FALSE(comparison.FindDivergence(0));
  comparison.AddReport(1, {256, 1}, 0);
  EXPECT_FALSE(comparison.FindDivergence(kLateNs));
}

TEST(DigestComparison, NamesEightOfManyAndCountsTheRest) {
  DigestComparison comparison(100);
  for (int rank = 0; rank < 100; ++rank) comparison.AddReport(rank, {256, rank % 5 == 0 ? 9u : 1u}, 0);
  const auto divergence = comparison.FindDivergence(0);
  ASSERT_TRUE(divergence);
  EXPECT_THAT(divergence->ranks, ElementsAre(0, 5, 10, 15, 20, 25, 30, 35));
  EXPECT_EQ(divergence->n_ranks, 20u);
  std::vector<int> names(100);
  std::iota(names.begin(), names.end(), 0);
  EXPECT_THAT(Describe(*divergence, names),
              ::testing::StartsWith("ranks 0, 5, 10, 15, 20, 25, 30, 35 and 12 more"));
}

// Ranks that issue calls at a common speed. Each looks once a second, at a time of its own, and sends its new
// digests, as in the runtime. The digests of the falsified rank differ from a given call on.
class LookingRanks {
 public:
  LookingRanks(uint32_t seed, bool falsify) : random_(seed), falsify_(falsify) {
    n_ranks_ = 2 + static_cast<int>(random_() % 30);
    calls_a_second_ = 1 + random_() % 200'000;
    falsified_rank_ = static_cast<int>(random_() % static_cast<uint32_t>(n_ranks_));
    falsified_call_ = 1 + random_() % (20 * calls_a_second_);
    told_.resize(static_cast<size_t>(n_ranks_));
    for (int rank = 0; rank < n_ranks_; ++rank) phase_ns_.push_back(random_() % 1'000'000'000);
  }

  // Returns the time from the falsified call until the comparison found it, or INT64_MAX if it did not.
  int64_t FoundAfterNs(Divergence& found) {
    DigestComparison comparison(n_ranks_);
    const int64_t end = 30'000'000'000 + 3000 * 256'000'000'000 / calls_a_second_;
    for (int64_t second = 0; second < end; second += 1'000'000'000) {
      for (int rank = 0; rank < n_ranks_; ++rank) Look(comparison, rank, second);
      const auto divergence = comparison.FindDivergence(second);
      if (!divergence) continue;
      found = *divergence;
      return second - static_cast<int64_t>(falsified_call_ * 1'000'000'000 / calls_a_second_);
    }
    return INT64_MAX;
  }

  int n_ranks() const { return n_ranks_; }
  int falsified_rank() const { return falsified_rank_; }
  uint64_t falsified_call() const { return falsified_call_; }
  int64_t calls_a_second() const { return calls_a_second_; }

 private:
  void Look(DigestComparison& comparison, int rank, int64_t second) {
    const auto index = static_cast<size_t>(rank);
    const auto now = static_cast<uint64_t>(second) + phase_ns_[index];
    const auto calls =
        static_cast<uint64_t>(static_cast<double>(now) * 1e-9 * static_cast<double>(calls_a_second_));
    uint64_t told = told_[index];
    for (int power = 0; power < kKeptCheckpoints; ++power) {
      const uint64_t multiple = kCheckpointCalls << power;
      const uint64_t last = calls / multiple;
      const uint64_t call = (last % 2 == 1 || last == 0 ? last : last - 1) * multiple;
      if (call <= told_[index]) continue;
      told = std::max(told, call);
      const bool wrong = falsify_ && rank == falsified_rank_ && call > falsified_call_;
      comparison.AddReport(rank, {call, call * 31 + (wrong ? 1 : 0)}, second);
    }
    told_[index] = told;
  }

  std::mt19937 random_;
  const bool falsify_;
  int n_ranks_ = 0;
  int falsified_rank_ = 0;
  uint64_t falsified_call_ = 0;
  int64_t calls_a_second_ = 0;
  std::vector<uint64_t> told_;
  std::vector<uint64_t> phase_ns_;
};

TEST(DigestComparison, FindsOneFalsifiedDecisionWithinSecondsAtAnySpeed) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    LookingRanks ranks(seed, true);
    Divergence found;
    const int64_t after_ns = ranks.FoundAfterNs(found);
    // The bound is the time to the next call number that is a multiple of 256 and of a power of two that all
    // ranks report, plus the time between looks, plus the patience.
    const int64_t most_ns = 12'000'000'000 + 2 * 256'000'000'000 / ranks.calls_a_second();
    EXPECT_LE(after_ns, most_ns) << ranks.calls_a_second() << " calls a second";
    EXPECT_LE(found.from, ranks.falsified_call());
    EXPECT_GT(found.until, ranks.falsified_call());
    if (found.from_most)
      EXPECT_THAT(found.ranks, ElementsAre(ranks.falsified_rank()));
    else
      EXPECT_THAT(found.ranks, ::testing::Contains(ranks.falsified_rank()));
  }
}

TEST(DigestComparison, FindsNothingInThousandsOfSecondsOfEqualRanks) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    LookingRanks ranks(seed, false);
    Divergence found;
    EXPECT_EQ(ranks.FoundAfterNs(found), INT64_MAX) << seed;
  }
}

}  // namespace
}  // namespace dynamiccl
