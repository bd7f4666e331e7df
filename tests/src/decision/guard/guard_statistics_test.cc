// SPDX-License-Identifier: Apache-2.0
// Tests the guard's statistics against their definitions, by their error rates in many random jobs. The seeds
// are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "src/decision/guard/betting_capital.h"
#include "src/decision/guard/key_account.h"
#include "src/decision/guard/memory_level.h"
#include "src/decision/guard/paired_times.h"
#include "src/decision/guard/timing_detector.h"

namespace dynamiccl {
namespace {

// The test is evaluated after each of 300 values whose mean lies exactly on the border, the worst case of the
// promise.
TEST(BettingTest, IsWrongNoMoreOftenThanItSays) {
  constexpr int kJobs = 4000;
  constexpr double kDelta = 0.05;
  int wrong = 0;
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0, 0.08);
  for (int job = 0; job < kJobs; ++job) {
    BettingTest test(0, 0.2);
    for (int i = 0; i < 300; ++i) test.Add(noise(random));
    wrong += test.Below(kDelta) ? 1 : 0;
  }
  EXPECT_LE(wrong, kJobs * kDelta) << "seed 11";
  EXPECT_GT(wrong, 0) << "a test that never says it has no power either";
}

// The values are one of two numbers, far from a normal distribution. The promise must hold for any
// distribution.
TEST(BettingTest, HoldsForSkewedValuesToo) {
  int wrong = 0;
  std::mt19937_64 random(12);
  std::bernoulli_distribution high(0.1);
  for (int job = 0; job < 4000; ++job) {
    BettingTest test(0, 0.2);
    for (int i = 0; i < 300; ++i) test.Add(high(random) ? 0.18 : -0.02);
    wrong += test.Below(0.05) ? 1 : 0;
  }
  EXPECT_LE(wrong, 200) << "seed 12";
}

TEST(BettingTest, SeesAGainOfTenPercentWithinThirtyPairs) {
  std::mt19937_64 random(13);
  std::normal_distribution<double> ratio(std::log(0.9), 0.07);
  int seen = 0;
  for (int job = 0; job < 200; ++job) {
    BettingTest test(-0.005, 0.2);
    for (int i = 0; i < 30; ++i) test.Add(ratio(random));
    seen += test.Below(1e-3) ? 1 : 0;
  }
  EXPECT_GT(seen, 150) << "seed 13";
}

TEST(PairedTimes, NoCallIsInTwoPairs) {
  PairedTimes pairs;
  EXPECT_FALSE(pairs.TakeRare(5));
  EXPECT_EQ(pairs.TakeCommon(3), 2) << "the next common call completes the pair";
  EXPECT_FALSE(pairs.TakeRare(4));
  EXPECT_EQ(pairs.TakeCommon(1), 3);
  for (const double common : {1.0, 9.0, 2.0, 3.0}) EXPECT_FALSE(pairs.TakeCommon(common));
  EXPECT_EQ(pairs.TakeRare(4), 1) << "the median of the last three";
  EXPECT_FALSE(pairs.TakeRare(4)) << "they are used up";
}

TEST(KeyAccount, FourCallsOfTenTimesAreGross) {
  KeyAccount account;
  for (int i = 0; i < 4; ++i) account.TakeDefault(100);
  for (int i = 0; i < 3; ++i) account.TakeChoice(1000);
  EXPECT_FALSE(account.IsGross());
  account.TakeChoice(1000);
  EXPECT_TRUE(account.IsGross());
  EXPECT_TRUE(account.Overspent());
}

// Each call counts as four times as long, so the third uses up the credit of eight calls.
TEST(KeyAccount, ThreeCallsOfTenTimesAreMoreThanTheCredit) {
  KeyAccount account;
  for (int i = 0; i < 4; ++i) account.TakeDefault(100);
  for (int i = 0; i < 2; ++i) account.TakeChoice(1000);
  EXPECT_FALSE(account.Overspent());
  account.TakeChoice(1000);
  EXPECT_TRUE(account.Overspent());
}

TEST(KeyAccount, OneStallIsNot) {
  KeyAccount account;
  for (int i = 0; i < 400; ++i) {
    if (i % 4 == 0) account.TakeDefault(100);
    account.TakeChoice(i % 50 == 0 ? 2000 : 99);
    EXPECT_FALSE(account.Overspent()) << i;
  }
}

TEST(KeyAccount, ALossOfFivePercentIsFoundByItsSum) {
  KeyAccount account;
  int calls = 0;
  for (int i = 0; i < 64; ++i) account.TakeDefault(100);
  while (!account.Overspent() && calls < 5000) account.TakeChoice(105), ++calls;
  // 8 calls of credit and 1 % of the calls so far, of which each call uses 5 %.
  EXPECT_NEAR(calls, 8 / 0.04, 20);
}

TEST(KeyAccount, GainsAreNotSavedUp) {
  KeyAccount account;
  for (int i = 0; i < 64; ++i) account.TakeDefault(100);
  for (int i = 0; i < 10'000; ++i) account.TakeChoice(50);
  EXPECT_EQ(account.excess_ns(), 0);
}

TEST(MemoryLevel, LevelsNeedAClearChange) {
  MemoryLevel memory;
  memory.Take(24, 100);
  EXPECT_EQ(memory.level(), MemoryPressure::kLow) << "within the margin of the border";
  memory.Take(20, 100);
  EXPECT_EQ(memory.level(), MemoryPressure::kMedium);
  memory.Take(26, 100);
  EXPECT_EQ(memory.level(), MemoryPressure::kMedium);
  memory.Take(5, 100);
  EXPECT_EQ(memory.level(), MemoryPressure::kHigh);
  memory.Take(0, 0);
  EXPECT_EQ(memory.level(), MemoryPressure::kHigh) << "a device that does not say";
  memory.Take(90, 100);
  EXPECT_EQ(memory.level(), MemoryPressure::kLow);
}

struct Weather {
  double factor = 1;
  double noise = 0.05;
  double skew = 0.1;  // A value below 0 means that the skew is not known.
};

// Returns the regimes that the detector reports in `calls` calls.
std::vector<Regime> Watch(TimingDetector& detector, const Weather& fabric, int calls, std::mt19937_64& random,
                          int64_t& now_ns) {
  std::vector<Regime> changes;
  std::normal_distribution<double> normal(0, fabric.noise);
  std::uniform_real_distribution<double> late(0, 2 * std::max(fabric.skew, 0.0));
  for (int i = 0; i < calls; ++i) {
    now_ns += 1'000'000;
    TimedSample sample;
    sample.stream = static_cast<uint64_t>(i % 3);
    sample.at_ns = now_ns;
    sample.log_transfer = std::log(1e6 * fabric.factor) + normal(random);
    if (fabric.skew >= 0) sample.log_skew = std::log1p(late(random));
    if (const auto change = detector.Take(sample)) changes.push_back(change->regime);
  }
  return changes;
}

TEST(TimingDetector, TellsCongestionADegradedLinkAndAStragglerApart) {
  std::mt19937_64 random(5);
  const auto after = [&](const Weather& fabric) {
    TimingDetector detector;
    int64_t now_ns = 0;
    EXPECT_TRUE(Watch(detector, {}, 3000, random, now_ns).empty());
    return Watch(detector, fabric, 200, random, now_ns);
  };
  EXPECT_EQ(after({1.5, 0.05, 0.1}), std::vector{Regime::kDegradedLink});
  EXPECT_EQ(after({2.0, 0.3, 0.1}), std::vector{Regime::kCongested});
  EXPECT_EQ(after({1.0, 0.05, 3.0}), std::vector{Regime::kStraggler});
}

// The keys vary by different amounts, and the slower link slows some of them more than others. That is not
// congestion.
TEST(TimingDetector, ADegradedLinkThatSlowsKeysUnequallyIsNoCongestion) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    TimingDetector detector;
    std::vector<Regime> changes;
    for (int i = 0; i < 2400; ++i) {
      const auto key = static_cast<uint64_t>(i % 4);
      const double slower = i < 2000 ? 0 : 0.3 + 0.2 * static_cast<double>(key);
      const double noise = 0.02 * static_cast<double>(1 + key) * normal(random);
      const auto change = detector.Take({key, int64_t{1'000'000} * (i + 1), std::log(1e6) + slower + noise});
      if (change) changes.push_back(change->regime);
    }
    EXPECT_EQ(changes, std::vector{Regime::kDegradedLink}) << seed;
  }
}

// Bursts meet every third call, so the median stays where it was. After the first alarm they are usual, and
// later alarms are at most one in 20,000 calls.
TEST(TimingDetector, BurstsInLessThanHalfOfTheCallsAreCongestion) {
  constexpr int kSeeds = 400, kQuiet = 2000, kCalls = 12'000;
  size_t later = 0;
  int unnoticed = 0, of_another_kind = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 0.05);
    std::uniform_real_distribution<double> uniform;
    TimingDetector detector;
    detector.SetLeastSpan(160'000'000);
    std::vector<std::pair<int, Regime>> changes;
    for (int i = 0; i < kCalls; ++i) {
      const double burst = i >= kQuiet && uniform(random) < 1.0 / 3 ? std::log(2.5) : 0;
      const auto change = detector.Take({static_cast<uint64_t>(i % 4), int64_t{1'000'000} * (i + 1),
                                         std::log(1e6) + burst + normal(random)});
      if (change) changes.emplace_back(i, change->regime);
    }
    unnoticed += changes.empty() || changes[0].first >= kQuiet + 400;
    if (changes.empty()) continue;
    EXPECT_GT(changes[0].first, kQuiet) << seed;
    of_another_kind += changes[0].second != Regime::kCongested;
    later += changes.size() - 1;
  }
  // The verification rejects the change in 9 of these 400 jobs.
  EXPECT_LE(unnoticed, kSeeds * 3 / 100);
  EXPECT_LE(of_another_kind, kSeeds / 100);
  EXPECT_LE(later, kSeeds * (kCalls - kQuiet) / 20'000u);
}

TEST(TimingDetector, SaysWhenTheFabricIsAsBeforeAgain) {
  std::mt19937_64 random(6);
  TimingDetector detector;
  int64_t now_ns = 0;
  EXPECT_TRUE(Watch(detector, {}, 1000, random, now_ns).empty());
  EXPECT_EQ(Watch(detector, {1.5, 0.05, 0.1}, 300, random, now_ns), std::vector{Regime::kDegradedLink});
  EXPECT_EQ(Watch(detector, {}, 300, random, now_ns), std::vector{Regime::kNormal});
  EXPECT_EQ(detector.regime(), Regime::kNormal);
}

// Tests every transition between late and punctual ranks in every state of the fabric.
TEST(TimingDetector, LateRanksSayNothingAboutTheFabric) {
  std::mt19937_64 random(8);
  TimingDetector detector;
  int64_t now_ns = 0;
  const auto watch = [&](const Weather& fabric) { return Watch(detector, fabric, 400, random, now_ns); };
  EXPECT_TRUE(watch({}).empty());
  EXPECT_EQ(watch({1.0, 0.05, 3.0}), std::vector{Regime::kStraggler});
  EXPECT_EQ(detector.fabric(), Regime::kNormal);
  EXPECT_EQ(watch({}), std::vector{Regime::kNormal});
  EXPECT_EQ(watch({1.5, 0.05, 0.1}), std::vector{Regime::kDegradedLink});
  EXPECT_EQ(watch({1.5, 0.05, 3.0}), std::vector{Regime::kStraggler});
  EXPECT_EQ(detector.fabric(), Regime::kDegradedLink);
  EXPECT_EQ(watch({1.5, 0.05, 0.1}), std::vector{Regime::kDegradedLink}) << "as before the ranks were late";
  EXPECT_EQ(watch({}), std::vector{Regime::kNormal});
}

// The reference for transfers must stay when ranks become late: with rare samples it would take too long to
// learn it again.
TEST(TimingDetector, SeesAChangeOfTheFabricRightAfterOneOfTheRanks) {
  std::mt19937_64 random(9);
  TimingDetector detector;
  int64_t now_ns = 0;
  EXPECT_TRUE(Watch(detector, {}, 1000, random, now_ns).empty());
  EXPECT_EQ(Watch(detector, {1.0, 0.05, 3.0}, 40, random, now_ns), std::vector{Regime::kStraggler});
  Watch(detector, {1.5, 0.05, 3.0}, 40, random, now_ns);
  EXPECT_EQ(detector.fabric(), Regime::kDegradedLink);
}

TEST(TimingDetector, UnsteadyRanksHideNoChangeOfTheFabric) {
  std::mt19937_64 random(10);
  TimingDetector detector;
  detector.SetLeastSpan(400'000'000);
  int64_t now_ns = 0;
  EXPECT_TRUE(Watch(detector, {}, 1000, random, now_ns).empty());
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Watch(detector, {1.0, 0.05, 20}, 30, random, now_ns).empty());
    EXPECT_TRUE(Watch(detector, {}, 800, random, now_ns).empty());
  }
  EXPECT_GE(detector.dismissed(), 10u);
  Watch(detector, {1.5, 0.05, 0.1}, 1000, random, now_ns);
  EXPECT_EQ(detector.fabric(), Regime::kDegradedLink);
}

// A rank stops sending its times, so nobody knows how far apart ranks arrive.
TEST(TimingDetector, AnAlarmWithoutAnAnswerEnds) {
  std::mt19937_64 random(11);
  TimingDetector detector;
  detector.SetLeastSpan(400'000'000);
  int64_t now_ns = 0;
  EXPECT_TRUE(Watch(detector, {}, 1000, random, now_ns).empty());
  EXPECT_TRUE(Watch(detector, {1.0, 0.05, 20}, 30, random, now_ns).empty());
  ASSERT_TRUE(detector.verifying());
  EXPECT_TRUE(Watch(detector, {1.0, 0.05, -1}, 300, random, now_ns).empty());
  EXPECT_FALSE(detector.verifying());
}

TEST(TimingDetector, ABurstThatIsOverIsDismissed) {
  std::mt19937_64 random(7);
  TimingDetector detector;
  detector.SetLeastSpan(400'000'000);
  int64_t now_ns = 0;
  EXPECT_TRUE(Watch(detector, {}, 1000, random, now_ns).empty());
  EXPECT_TRUE(Watch(detector, {1.5, 0.05, 0.1}, 100, random, now_ns).empty());
  EXPECT_TRUE(detector.verifying());
  EXPECT_TRUE(Watch(detector, {}, 2000, random, now_ns).empty());
  EXPECT_FALSE(detector.verifying());
  EXPECT_GE(detector.dismissed(), 1u);
}

}  // namespace
}  // namespace dynamiccl
