// SPDX-License-Identifier: Apache-2.0
// Tests the bisection over releases with faults whose first and last release are known.
#include "tools/canary/bisection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Releases = std::vector<NcclRelease>;

// A fault that begins in release `since` and ends in release `until`.
struct Fault {
  NcclRelease since;
  NcclRelease until;
  Releases hiding;  // These releases do not run far enough to show the fault.

  FaultState operator()(const NcclRelease& release) const {
    if (std::ranges::count(hiding, release) > 0) return FaultState::kHidden;
    return release >= since && release < until ? FaultState::kPresent : FaultState::kAbsent;
  }
};

Bisection Bisected(const NcclRelease& without, const NcclRelease& with, const Releases& here,
                   const Fault& fault) {
  const auto state = [&](const NcclRelease& release) -> Result<FaultState> {
    EXPECT_EQ(std::ranges::count(here, release), 1) << release.text() << " is not here";
    return fault(release);
  };
  return BisectFault(without, with, here, state).value();
}

// Returns the published releases strictly between two others.
Releases Between(const NcclRelease& after, const NcclRelease& before) {
  Releases between;
  for (const NcclRelease& one : PublishedReleases()) {
    if (one > after && one < before) between.push_back(one);
  }
  return between;
}

TEST(BisectFault, NamesTheReleasesThatAreNotInTheCache) {
  const Fault fault{.since = {2, 25, 1}, .until = {2, 29, 2}, .hiding = {}};
  const auto found = Bisected({2, 24, 3}, {2, 28, 9}, {{2, 24, 3}, {2, 28, 9}, {2, 32, 3}}, fault);
  EXPECT_EQ(found.last_without.text() + " " + found.first_with.text(), "2.24.3 2.28.9");
  EXPECT_EQ(found.last_with->text() + " " + found.free_again->text(), "2.28.9 2.32.3");
  Releases gaps = Between({2, 24, 3}, {2, 28, 9});
  EXPECT_EQ(gaps.front().text() + " " + gaps.back().text(), "2.25.1 2.28.7");
  for (const NcclRelease& one : Between({2, 28, 9}, {2, 32, 3})) gaps.push_back(one);
  EXPECT_EQ(found.not_looked_at, gaps);
}

TEST(BisectFault, OfAWholeCacheNamesTheReleasesThemselves) {
  const Fault fault{.since = {2, 25, 1}, .until = {2, 29, 2}, .hiding = {}};
  for (const NcclRelease with : {NcclRelease{2, 25, 1}, NcclRelease{2, 27, 7}, NcclRelease{2, 28, 9}}) {
    const auto found = Bisected({2, 21, 5}, with, PublishedReleases(), fault);
    EXPECT_EQ(found.first_with.text() + " " + found.free_again->text(), "2.25.1 2.29.2");
    EXPECT_THAT(found.not_looked_at, IsEmpty());
  }
}

// This must hold for any set of cached releases. The release that begins the fault is the first release that
// shows it, or an untested release just before that one. The same holds for the release that ends it.
TEST(BisectFault, NeverExcludesTheReleaseThatBringsOrEndsTheFault) {
  const Releases& all = PublishedReleases();
  std::mt19937 random(27);
  const auto pick = [&](size_t least, size_t most) {
    return std::uniform_int_distribution<size_t>(least, most)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    const size_t since = pick(1, all.size() - 2), until = pick(since + 1, all.size() - 1);
    const Fault fault{.since = all[since], .until = all[until], .hiding = {}};
    const NcclRelease without = all[pick(0, since - 1)], with = all[pick(since, until - 1)];
    Releases here;
    for (const NcclRelease& one : all) {
      if (one == without || one == with || pick(0, 2) == 0) here.push_back(one);
    }
    const auto found = Bisected(without, with, here, fault);
    EXPECT_EQ(fault(found.last_without), FaultState::kAbsent);
    EXPECT_EQ(fault(found.first_with), FaultState::kPresent);
    EXPECT_TRUE(found.last_without < all[since] && all[since] <= found.first_with);
    Releases gaps = Between(found.last_without, found.first_with);
    const bool ends_here = here.back() >= all[until];
    ASSERT_EQ(found.free_again.has_value(), ends_here);
    if (ends_here) {
      EXPECT_TRUE(*found.last_with < all[until] && all[until] <= *found.free_again);
      const Releases later = Between(*found.last_with, *found.free_again);
      gaps.insert(gaps.end(), later.begin(), later.end());
    }
    EXPECT_EQ(found.not_looked_at, gaps);
  }
}

TEST(BisectFault, LeavesOutReleasesThatHideTheFault) {
  const Fault fault{.since = {2, 25, 1}, .until = {2, 29, 2}, .hiding = {{2, 25, 1}, {2, 26, 2}, {2, 32, 3}}};
  const auto found = Bisected({2, 24, 3}, {2, 26, 5}, PublishedReleases(), fault);
  EXPECT_EQ(found.last_without.text() + " " + found.first_with.text(), "2.24.3 2.26.5");
  EXPECT_EQ(found.free_again->text(), "2.29.2");
  EXPECT_THAT(found.hidden, ElementsAre(NcclRelease{2, 25, 1}, NcclRelease{2, 26, 2}, NcclRelease{2, 32, 3}));
  EXPECT_THAT(found.not_looked_at, IsEmpty());
}

TEST(BisectFault, AFaultOfTheNewestReleaseHasNoEnd) {
  const Fault fault{.since = {2, 29, 7}, .until = {9, 0, 0}, .hiding = {}};
  const auto found = Bisected({2, 24, 3}, {2, 30, 7}, PublishedReleases(), fault);
  EXPECT_EQ(found.first_with.text(), "2.29.7");
  EXPECT_FALSE(found.free_again || found.last_with);
}

TEST(PublishedReleases, AreInOrder) {
  EXPECT_TRUE(std::ranges::is_sorted(PublishedReleases()));
}

}  // namespace
}  // namespace dynamiccl
