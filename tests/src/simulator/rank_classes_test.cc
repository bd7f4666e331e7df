// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/rank_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/src/simulator/jobs.h"

namespace dynamiccl {
namespace {

SimulatedJob Grid(int ranks, int tensor, int ranks_per_node) {
  SimulatedJob job = JobOfAll(ranks, ranks_per_node, RandomProgram(1, 2, 4));
  job.layouts = {Neighbours(ranks, tensor), Across(ranks, tensor)};
  return job;
}

TEST(RankClasses, EqualRanksAreOneClass) {
  const JobClasses classes = ClassesOf(Grid(4096, 8, 8));
  ASSERT_EQ(classes.ranks.size(), 1u);
  EXPECT_EQ(classes.ranks[0].ranks, 4096);
  ASSERT_EQ(classes.communicators.size(), 2u);
  EXPECT_EQ(classes.communicators[0].communicators, 512);
  EXPECT_EQ(classes.communicators[1].communicators, 8);
  EXPECT_EQ(classes.communicators[1].nodes, 512);
  ASSERT_EQ(classes.nodes.size(), 1u);
  EXPECT_THAT(classes.nodes[0].communicators, ::testing::ElementsAre(std::pair(0u, 1), std::pair(1u, 8)));
}

// The classes are the straggler, its tensor-parallel neighbours, its data-parallel peers, and all other
// ranks.
TEST(RankClasses, AStragglerSplitsThoseWhoMeetIt) {
  SimulatedJob job = Grid(64, 8, 8);
  job.stragglers = {{.rank = 9, .late_ns = 5}};
  const JobClasses classes = ClassesOf(job);
  EXPECT_EQ(classes.ranks.size(), 4u);
  EXPECT_NE(classes.class_of_rank[9], classes.class_of_rank[8]);
  EXPECT_EQ(classes.class_of_rank[8], classes.class_of_rank[10]);
  EXPECT_EQ(classes.class_of_rank[1], classes.class_of_rank[17]);
  EXPECT_EQ(classes.class_of_rank[0], classes.class_of_rank[63]);
}

TEST(RankClasses, ANodeWithFewerRanksIsAnother) {
  const JobClasses classes = ClassesOf(Grid(20, 2, 8));
  EXPECT_EQ(classes.nodes.size(), 2u);
  EXPECT_EQ(classes.ranks.size(), 2u);
}

TEST(RankClasses, ApartEveryRankStandsForItself) {
  EXPECT_EQ(ClassesOf(Grid(64, 8, 8), true).ranks.size(), 64u);
}

}  // namespace
}  // namespace dynamiccl
