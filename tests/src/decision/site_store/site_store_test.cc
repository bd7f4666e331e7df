// SPDX-License-Identifier: Apache-2.0
#include "src/decision/site_store/site_store.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/src/decision/site_store/sample_store.h"

namespace dynamiccl {
namespace {

using testing::kDay;
using testing::kNow;

constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kLL, 4};

TEST(SiteStore, TheSameConfigAddsUp) {
  SiteStore store;
  const SiteKey key;
  store.Learn(key, {kTree, -6000, 10, 1, kNow - kDay});
  store.Learn(key, {kTree, -9000, 20, 1, kNow});
  EXPECT_EQ(store.Known(key, kNow), (Confirmed{kTree, -8000, 30, 2, kNow}));
}

TEST(SiteStore, AnotherConfigReplacesOnlyWhatIsNotNewer) {
  SiteStore store;
  const SiteKey key;
  store.Learn(key, {kTree, -6000, 10, 7, kNow - kDay});
  store.Learn(key, {kRing, -1, 5, 1, kNow - 2 * kDay});
  EXPECT_EQ(store.Known(key, kNow)->config, kTree);
  store.Learn(key, {kRing, -1, 5, 1, kNow});
  EXPECT_EQ(store.Known(key, kNow), (Confirmed{kRing, -1, 5, 1, kNow}));
}

TEST(SiteStore, OldEntriesAreNotUsedAndLaterForgotten) {
  SiteStore store;
  const SiteKey key;
  store.Learn(key, {kTree, -6000, 10, 1, kNow});
  EXPECT_TRUE(store.Known(key, kNow + kTrustedSeconds));
  EXPECT_FALSE(store.Known(key, kNow + kTrustedSeconds + 1));
  EXPECT_FALSE(store.Known(key, kNow - 2 * kDay)) << "from the future";
  store.Age(kNow + kForgottenSeconds);
  EXPECT_EQ(store.entries().size(), 1u);
  store.Age(kNow + kForgottenSeconds + 1);
  EXPECT_TRUE(store.entries().empty());
}

// A wrong clock or an edited file may give an entry of the future. The store must not trust it, and it must
// not block a correct entry.
TEST(SiteStore, EntriesOfTheFutureAreForgotten) {
  for (const int64_t time : {kNow + 2 * kDay, std::numeric_limits<int64_t>::max()}) {
    SiteStore store;
    store.Learn({}, {kTree, -6000, 10, 1, time});
    EXPECT_FALSE(store.Known({}, kNow)) << time;
    store.Age(kNow);
    EXPECT_TRUE(store.entries().empty()) << time;
  }
}

TEST(SiteStore, AnyTimeMayStandInAFile) {
  constexpr int64_t kTimes[] = {std::numeric_limits<int64_t>::min(), -1, 0,
                                std::numeric_limits<int64_t>::max()};
  for (const int64_t confirmed : kTimes) {
    for (const int64_t now : kTimes) {
      SiteStore store;
      store.Learn({}, {kTree, -6000, 10, 1, confirmed});
      EXPECT_EQ(store.Known({}, now).has_value(),
                confirmed == now || (confirmed == -1 && now == 0) || (confirmed == 0 && now == -1));
      store.Age(now);
    }
  }
}

TEST(SiteStore, AnotherPlaceIsAnotherEntry) {
  SiteStore store;
  SiteKey key;
  store.Learn(key, {kTree, -6000, 10, 1, kNow});
  for (const auto change : std::vector<void (*)(SiteKey&)>{
           [](SiteKey& k) { k.place.fabric[15] = 1; }, [](SiteKey& k) { k.place.nccl_version = 1; },
           [](SiteKey& k) { k.place.n_ranks = 2; }, [](SiteKey& k) { k.place.n_nodes = 2; },
           [](SiteKey& k) { k.key.collective = Collective::kReduce; },
           [](SiteKey& k) { k.key.size_class.index = 1; }, [](SiteKey& k) { k.key.role = Role::kScalar; },
           [](SiteKey& k) { k.regime = Regime::kCongested; }}) {
    SiteKey other = key;
    change(other);
    EXPECT_FALSE(store.Known(other, kNow));
  }
}

TEST(SiteStore, CountsStopAtTheirMost) {
  SiteStore store;
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  store.Learn({}, {kTree, -6000, kMax - 1, kMax, kNow});
  store.Learn({}, {kTree, -6000, 10, 1, kNow});
  EXPECT_EQ(store.Known({}, kNow)->pairs, kMax);
  EXPECT_EQ(store.Known({}, kNow)->runs, kMax);
}

TEST(SiteStore, AboveItsMostTheOldestGo) {
  SiteStore store;
  for (size_t i = 0; i < kMaxSiteEntries + 100; ++i) {
    SiteKey key;
    key.place.nccl_version = static_cast<uint32_t>(i);
    store.Learn(key, {kTree, 0, 1, 1, kNow + static_cast<int64_t>(i / 64)});
  }
  store.Age(kNow);
  EXPECT_EQ(store.entries().size(), kMaxSiteEntries);
  for (const auto& [key, confirmed] : store.entries()) EXPECT_GE(confirmed.confirmed_s, kNow + 1);
}

TEST(SiteStore, ANewerFindingReplacesAnEarlierOne) {
  const FindingKey key{{}, 1, Algorithm::kRing, Protocol::kSimple, ChannelCount::kOne};
  FindingKey kept = key;
  kept.octave = 2;
  SiteStore store;
  store.Learn(key, {{2, 0.5}, -0.25, 0.03, 40, kNow});
  store.Learn(key, {{2, 0.5}, 0.5, 0.03, 4, kNow - kDay});
  EXPECT_EQ(store.findings().at(kept).effect, -0.25);
  store.Learn(key, {{1.6, 0.5}, -0.1, 0.02, 60, kNow + kDay});
  ASSERT_EQ(store.findings().size(), 1u);
  EXPECT_EQ(store.findings().at(kept).effect, -0.1);
  store.Learn(key, {{0.2, 0.5}, 0.1, 0.02, 60, kNow + kDay});
  EXPECT_EQ(store.findings().size(), 2u) << "the place when its links were well";
  FindingKey other = key;
  other.channels = ChannelCount::kMany;
  store.Learn(other, {{2, 0.5}, 0.1, 0.02, 60, kNow});
  EXPECT_EQ(store.findings().size(), 3u);
}

TEST(SiteStore, FindingsAgeAsEntriesDo) {
  SiteStore store;
  for (size_t i = 0; i < kMaxFindings + 100; ++i) {
    FindingKey key;
    key.place.nccl_version = static_cast<uint32_t>(i);
    store.Learn(key, {{}, 0, 1, 1, kNow + static_cast<int64_t>(i / 64)});
  }
  EXPECT_FALSE(store.empty());
  store.Age(kNow);
  EXPECT_EQ(store.findings().size(), kMaxFindings);
  for (const auto& [key, finding] : store.findings()) EXPECT_GE(finding.found_s, kNow + 1);
  store.Age(kNow + kForgottenSeconds + kDay);
  EXPECT_TRUE(store.empty());
}

TEST(SiteStore, ChannelsAreCountedAgainstTheMost) {
  EXPECT_EQ(ChannelCountOf(1, 1), ChannelCount::kOne);
  EXPECT_EQ(ChannelCountOf(1, 32), ChannelCount::kOne);
  EXPECT_EQ(ChannelCountOf(4, 8), ChannelCount::kFew);
  EXPECT_EQ(ChannelCountOf(5, 8), ChannelCount::kMany);
  EXPECT_EQ(ChannelCountOf(2, 2), ChannelCount::kMany);
}

}  // namespace
}  // namespace dynamiccl
