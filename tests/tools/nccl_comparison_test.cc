// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/nccl_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/format/nccl_choices_file.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

constexpr NcclPair kRingLL{Algorithm::kRing, Protocol::kLL};
constexpr NcclPair kTreeLL{Algorithm::kTree, Protocol::kLL};
const NcclWorld kWorld{"box", 2, 8};

NcclCall CallOf(uint64_t bytes, NcclPair pair, int channels, float cost) {
  return {.bytes = bytes,
          .choice = {pair.first, pair.second, static_cast<uint8_t>(channels)},
          .threads = 512,
          .microseconds = {cost, cost / 2}};
}

// Adds a release that makes these choices for AllReduce.
void Add(NcclChoices* choices, const std::string& release, const std::vector<NcclCall>& calls) {
  choices->machines["box"] = {"A box", 90, "GenuineIntel"};
  NcclCalls& all_reduce =
      choices->releases[release].worlds[kWorld].collectives[static_cast<size_t>(Collective::kAllReduce)];
  all_reduce.pairs = {kRingLL, kTreeLL};
  all_reduce.calls = calls;
}

NcclChoices TwoReleases() {
  NcclChoices choices;
  Add(&choices, "2.28.9",
      {CallOf(1, kRingLL, 1, 10), CallOf(2, kRingLL, 2, 20), CallOf(4, kRingLL, 4, 40),
       CallOf(8, kRingLL, 8, 80), CallOf(16, kRingLL, 8, 90)});
  Add(&choices, "2.30.7",
      {CallOf(1, kRingLL, 1, 10), CallOf(2, kTreeLL, 3, 22), CallOf(4, kTreeLL, 5, 44),
       CallOf(8, kRingLL, 8, 80), CallOf(16, kRingLL, 4, 90)});
  return choices;
}

TEST(CompareReleases, NeighbouringSizesWithTheSameChangeAreOneRange) {
  const auto comparison = CompareReleases(TwoReleases(), "2.28.9", "2.30.7", "");
  ASSERT_TRUE(comparison) << comparison.error().message;
  EXPECT_EQ(comparison->calls, 5u);
  EXPECT_EQ(comparison->other_pairs, 2u);
  EXPECT_EQ(comparison->other_channels, 1u);
  ASSERT_EQ(comparison->ranges.size(), 2u);
  const ChangedRange& pairs = comparison->ranges[0];
  EXPECT_TRUE(pairs.other_pair());
  EXPECT_EQ(pairs.world, kWorld);
  EXPECT_EQ(pairs.collective, Collective::kAllReduce);
  EXPECT_EQ(pairs.bytes.least, 2u);
  EXPECT_EQ(pairs.bytes.most, 4u);
  EXPECT_EQ(pairs.before.pair, kRingLL);
  EXPECT_EQ(pairs.before.channels.most, 4);
  EXPECT_EQ(pairs.before.microseconds.most, 40);
  EXPECT_EQ(pairs.after.pair, kTreeLL);
  EXPECT_EQ(pairs.after.channels.least, 3);
  EXPECT_EQ(pairs.after.microseconds.least, 11);  // This is the second pair's cost.
  const ChangedRange& channels = comparison->ranges[1];
  EXPECT_FALSE(channels.other_pair());
  EXPECT_EQ(channels.bytes.least, 16u);
}

TEST(CompareReleases, ANarrowerRangeIsNotWidenedOverEqualSizes) {
  NcclChoices choices = TwoReleases();
  Add(&choices, "2.31.2", {CallOf(1, kTreeLL, 1, 10), CallOf(2, kRingLL, 2, 20), CallOf(4, kTreeLL, 4, 40)});
  const auto comparison = CompareReleases(choices, "2.28.9", "2.31.2", "box");
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->calls, 3u);  // Both releases have these sizes.
  ASSERT_EQ(comparison->ranges.size(), 2u);
  EXPECT_EQ(comparison->ranges[0].bytes.most, 1u);
  EXPECT_EQ(comparison->ranges[1].bytes.least, 4u);
}

TEST(CompareReleases, TheSameReleaseDiffersInNothing) {
  const auto comparison = CompareReleases(TwoReleases(), "2.30.7", "2.30.7", "");
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->calls, 5u);
  EXPECT_TRUE(comparison->ranges.empty());
}

TEST(CompareReleases, UnknownNamesAreAnsweredWithTheKnownOnes) {
  const auto release = CompareReleases(TwoReleases(), "2.28.9", "2.30.8", "");
  ASSERT_FALSE(release);
  EXPECT_THAT(release.error().message, HasSubstr("no release of NCCL '2.30.8'"));
  EXPECT_THAT(release.error().hint, HasSubstr("did you mean 2.30.7? It has 2.28.9, 2.30.7"));
  const auto begun = CompareReleases(TwoReleases(), "2.2", "2.30.7", "");
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().hint, HasSubstr("did you mean 2.28.9?"));
  const auto machine = CompareReleases(TwoReleases(), "2.28.9", "2.30.7", "bax");
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error().hint, HasSubstr("did you mean box?"));
}

TEST(CompareReleases, ReleasesWithoutACommonWorldCannotBeCompared) {
  NcclChoices choices = TwoReleases();
  choices.releases["2.32.3"].worlds[{"box", 1, 8}] = {};
  const auto comparison = CompareReleases(choices, "2.28.9", "2.32.3", "");
  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.error().message, HasSubstr("no world of both 2.28.9 and 2.32.3"));
}

// The installed data set must contain these releases.
TEST(CompareReleases, TheCommittedDataHasTheReleasesThatPeopleUse) {
  const auto choices = ReadNcclChoices(NCCL_CHOICES_FILE);
  ASSERT_TRUE(choices) << choices.error().message;
  for (const char* release : {"2.21.5", "2.22.3", "2.27.7", "2.28.9", "2.30.7", "2.32.3"}) {
    for (const char* machine : {"dgx_h100", "dgx_a100", "dgx_b200", "pcie_l40s"}) {
      for (const int nodes : {1, 2, 4})
        EXPECT_TRUE(choices->releases.at(release).worlds.contains({machine, nodes, 8})) << release << machine;
    }
  }
  const auto comparison = CompareReleases(*choices, "2.28.9", "2.32.3", "dgx_b200");
  ASSERT_TRUE(comparison);
  EXPECT_GT(comparison->other_pairs, 0u);
  EXPECT_LT(comparison->other_pairs, comparison->calls / 2);
}

}  // namespace
}  // namespace dynamiccl
