// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/key_search.h"

#include <gtest/gtest.h>

#include <map>

namespace dynamiccl {
namespace {

CollectiveConfig Config(Algorithm algorithm, Protocol protocol, int channels) {
  return {algorithm, protocol, static_cast<uint8_t>(channels)};
}
const CollectiveConfig kRing1 = Config(Algorithm::kRing, Protocol::kSimple, 1);
const CollectiveConfig kRing2 = Config(Algorithm::kRing, Protocol::kSimple, 2);

// A search over rings and trees of all protocols with 1 to 16 channels. The test sets the observations.
class Search {
 public:
  Search() {
    std::vector<ProbeCandidate> candidates;
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
      for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL, Protocol::kLL128}) {
        for (int channels = 1; channels <= 16; channels *= 2)
          candidates.push_back({Config(algorithm, protocol, channels), 1});
      }
    }
    search.SetCandidates(candidates);
    search.Refill(kLeaveNcclAlone, seen);
  }
  void See(const CollectiveConfig& config, double mean, double error, uint32_t steps = 20) {
    known_[config.channels * 100 + static_cast<int>(config.algorithm) * 10 +
           static_cast<int>(config.protocol)] = {{mean, error}, steps, steps / 2};
  }
  KeySearch::SeenOf seen = [this](const CollectiveConfig& config) {
    return known_[config.channels * 100 + static_cast<int>(config.algorithm) * 10 +
                  static_cast<int>(config.protocol)];
  };
  bool IsOpen(const CollectiveConfig& config) const {
    return std::find(search.open().begin(), search.open().end(), config) != search.open().end();
  }
  KeySearch search;

 private:
  std::map<int, SeenConfig> known_;
};

TEST(KeySearch, BeginsWithTheFirstCandidates) {
  Search job;
  EXPECT_EQ(job.search.open().size(), kMaxArms);
  EXPECT_TRUE(job.IsOpen(kRing1));
  EXPECT_FALSE(job.search.over());
  EXPECT_FALSE(job.search.Winner(job.seen));
}

TEST(KeySearch, ACallWhoseLatencyIsCriticalTriesShortProtocolsAndFewChannelsFirst) {
  KeySearch search;
  const std::vector<CollectiveConfig> candidates = {
      Config(Algorithm::kRing, Protocol::kSimple, 16), Config(Algorithm::kRing, Protocol::kSimple, 8), kRing1,
      Config(Algorithm::kRing, Protocol::kLL128, 16),  Config(Algorithm::kRing, Protocol::kLL, 8),     kRing2,
      Config(Algorithm::kTree, Protocol::kSimple, 1),  Config(Algorithm::kRing, Protocol::kLL, 1)};
  std::vector<ProbeCandidate> given;
  for (const CollectiveConfig& config : candidates) given.push_back({config, 1});
  search.SetCandidates(given);
  search.PreferLowLatency();
  std::vector<CollectiveConfig> order;
  for (const ProbeCandidate& each : search.candidates()) order.push_back(each.config);
  const auto& was = candidates;
  EXPECT_EQ(order, (std::vector{was[2], was[3], was[4], was[5], was[0], was[1], was[6], was[7]}));
}

TEST(KeySearch, AnArmThatCostsTooMuchWithinABlockGoesAtOnce) {
  Search job;
  SeenConfig costly;
  costly.block_excess = 0.7;
  const auto seen = [&](const CollectiveConfig& config) { return config == kRing1 ? costly : SeenConfig{}; };
  EXPECT_TRUE(job.search.Judge(seen).empty()) << "only complete blocks are judged";
  EXPECT_TRUE(job.search.Judge(seen, {.most_in_block = 0.8}).empty());
  EXPECT_EQ(job.search.Judge(seen, {.most_in_block = 0.6}), std::vector{kRing1});
  EXPECT_FALSE(job.IsOpen(kRing1));
}

TEST(KeySearch, TheFastestThatIsSurelyFasterWins) {
  Search job;
  job.See(kRing1, -0.2, 0.02);
  job.See(kRing2, -0.1, 0.01);
  EXPECT_EQ(job.search.Winner(job.seen), kRing1);
  job.See(kRing1, -0.2, 0.05);
  EXPECT_EQ(job.search.Winner(job.seen), kRing2) << "the other is not sure yet";
}

TEST(KeySearch, OneBlockOfStepsMakesNoWinner) {
  Search job;
  job.See(kRing1, -0.3, 0.01, 2);
  EXPECT_FALSE(job.search.Winner(job.seen));
}

TEST(KeySearch, WhatIsSlowerOrNoGainIsGivenUp) {
  Search job;
  job.See(kRing1, 0.04, 0.01);  // This config is slower.
  job.See(kRing2, 0.0, 0.001);  // This config is equal.
  const CollectiveConfig open = Config(Algorithm::kRing, Protocol::kSimple, 4);
  job.See(open, -0.02, 0.02);
  EXPECT_TRUE(job.search.Judge(job.seen).empty()) << "nothing that must not wait";
  EXPECT_FALSE(job.IsOpen(kRing1));
  EXPECT_FALSE(job.IsOpen(kRing2));
  EXPECT_TRUE(job.IsOpen(open));
  EXPECT_EQ(job.search.open().size(), kMaxArms - 2);
}

TEST(KeySearch, WhatIsMuchSlowerIsUrgent) {
  Search job;
  job.See(kRing1, 0.4, 0.2, 1);
  EXPECT_EQ(job.search.Judge(job.seen), std::vector{kRing1});
  EXPECT_FALSE(job.IsOpen(kRing1));
}

TEST(KeySearch, WhatLooksMuchFasterIsLookedAtFirst) {
  Search job;
  EXPECT_EQ(job.search.Next(job.seen, true), job.search.open());
  EXPECT_TRUE(job.search.Next(job.seen, false).empty()) << "nobody knows what they cost";
  job.See(kRing1, -0.2, 0.03, 1);
  job.See(kRing2, -0.15, 0.1, 1);
  EXPECT_EQ(job.search.Next(job.seen, true), (std::vector{kRing1, kRing2}));
  EXPECT_EQ(job.search.open().size(), kMaxArms) << "the others wait";
}

TEST(KeySearch, RelativesOfWhatIsSlowAreNotTried) {
  Search job;
  for (const CollectiveConfig& config : std::vector(job.search.open())) {
    const bool ring = config.algorithm == Algorithm::kRing;
    job.See(config, ring && config.protocol == Protocol::kSimple ? -0.02 : 0.3, 0.01);
  }
  job.search.Judge(job.seen);
  job.search.Refill(kLeaveNcclAlone, job.seen);
  EXPECT_FALSE(job.IsOpen(Config(Algorithm::kRing, Protocol::kLL, 16)));
  EXPECT_TRUE(job.IsOpen(Config(Algorithm::kRing, Protocol::kLL128, 1))) << "nothing like it was seen";
}

TEST(KeySearch, EndsWhenNothingIsLeft) {
  Search job;
  for (int round = 0; round < 20 && !job.search.over(); ++round) {
    for (const CollectiveConfig& config : std::vector(job.search.open())) job.See(config, 0.0, 0.001);
    job.search.Judge(job.seen);
    job.search.Refill(kLeaveNcclAlone, job.seen);
  }
  EXPECT_TRUE(job.search.over());
  job.search.Restart();
  EXPECT_FALSE(job.search.began());
  job.search.Refill(kLeaveNcclAlone, job.seen);
  EXPECT_EQ(job.search.open().size(), kMaxArms) << "everything may be tried again";
}

TEST(KeySearch, AnAdoptedConfigIsNoArm) {
  Search job;
  job.search.Adopt(kRing1);
  job.search.Refill(kRing1, job.seen);
  EXPECT_FALSE(job.IsOpen(kRing1));
}

}  // namespace
}  // namespace dynamiccl
