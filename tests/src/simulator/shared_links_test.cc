// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/shared_links.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

TEST(SharedLinks, AloneATransferTakesItsTime) {
  SharedLinks links({10});
  links.Begin(0, 100, 1000, {{0, 10}});
  EXPECT_EQ(links.NextEnd(), 1100);
  EXPECT_EQ(links.EndNext(), 0u);
  EXPECT_EQ(links.NextEnd(), INT64_MAX);
  EXPECT_DOUBLE_EQ(links.CarriedBytes(0), 10000);
}

TEST(SharedLinks, TwoEqualTransfersTakeTwiceAsLong) {
  SharedLinks links({10});
  links.Begin(0, 0, 1000, {{0, 10}});
  links.Begin(1, 0, 1000, {{0, 10}});
  EXPECT_EQ(links.NextEnd(), 2000);
  EXPECT_EQ(links.EndNext(), 0u);
  EXPECT_EQ(links.NextEnd(), 2000);
  EXPECT_EQ(links.EndNext(), 1u);
}

// The second transfer comes when the first is half done: 500 alone, 1000 shared, then half of the second
// alone.
TEST(SharedLinks, WhoComesLaterSharesOnlyTheRest) {
  SharedLinks links({10});
  links.Begin(0, 0, 1000, {{0, 10}});
  links.Begin(1, 500, 1000, {{0, 10}});
  EXPECT_EQ(links.NextEnd(), 1500);
  links.EndNext();
  EXPECT_EQ(links.NextEnd(), 2000);
  EXPECT_EQ(links.EndNext(), 1u);
}

TEST(SharedLinks, StrangersTakeTheirShareWhileTheyAreThere) {
  SharedLinks links({10});
  links.Begin(0, 0, 1000, {{0, 10}});
  links.SetShare(0, 200, 0.5);
  EXPECT_EQ(links.NextEnd(), 1800);
  links.SetShare(0, 400, 1);
  EXPECT_EQ(links.NextEnd(), 1100);
}

TEST(SharedLinks, ALinkWithRoomForBothSlowsNobody) {
  SharedLinks links({10, 10});
  links.Begin(0, 0, 1000, {{0, 5}, {1, 10}});
  links.Begin(1, 0, 1000, {{0, 5}});
  EXPECT_EQ(links.NextEnd(), 1000);
}

// For any arrivals, the links must have carried exactly the bytes that were to be sent.
TEST(SharedLinks, BytesAreConserved) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const size_t n = 4;
    SharedLinks links(std::vector<double>(n, 20));
    std::vector<double> sent(n);
    int64_t now = 0;
    for (size_t i = 0; i < 40; ++i) {
      now += static_cast<int64_t>(random() % 400);
      while (links.NextEnd() <= now) links.EndNext();
      const auto alone = static_cast<int64_t>(random() % 3000);
      std::vector<LinkUse> uses;
      for (size_t link = 0; link < n; ++link) {
        if (random() % 2 == 0) uses.push_back({link, static_cast<double>(1 + random() % 20)});
        if (random() % 9 == 0) links.SetShare(link, now, 0.1 + 0.1 * static_cast<double>(random() % 10));
      }
      for (const LinkUse& use : uses) sent[use.link] += use.used * static_cast<double>(alone);
      links.Begin(i, now, alone, std::move(uses));
    }
    while (links.NextEnd() != INT64_MAX) links.EndNext();
    for (size_t link = 0; link < n; ++link)
      ASSERT_NEAR(links.CarriedBytes(link), sent[link], 1e-9 * sent[link] + 1e-6) << "seed " << seed;
  }
}

}  // namespace
}  // namespace dynamiccl
