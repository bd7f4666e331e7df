// SPDX-License-Identifier: Apache-2.0
// Compares counts and offsets with nccl-tests' own formulas (*GetCollByteCount and *GetBw).
#include "tools/bench/tested_collective.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

using enum TestedCollective;

TEST(TestedCollective, NamesOfNcclTestsProgramsAreKnown) {
  for (int c = 0; c < kTestedCollectives; ++c) {
    const auto collective = static_cast<TestedCollective>(c);
    EXPECT_EQ(ParseTestedCollective(ProgramName(collective)), collective);
    EXPECT_EQ(ParseTestedCollective(std::string(ProgramName(collective)) + "_perf"), collective);
  }
  EXPECT_EQ(ParseTestedCollective("AllReduce"), kAllReduce);
  EXPECT_EQ(ParseTestedCollective("alltoallv"), std::nullopt);
}

TEST(TestedCollective, FirstFiveHaveCollectivesNumbers) {
  for (int c = 0; c < kTunableCollectives; ++c)
    EXPECT_EQ(ParseTestedCollective(Name(static_cast<Collective>(c))), static_cast<TestedCollective>(c));
}

TEST(LayoutOf, PartsBeginAtSixteenBytes) {
  const CallLayout gather =
      LayoutOf(kAllGather, 1000, 4, 3);  // Of 333 elements per rank, 332 fill whole 16-byte units.
  EXPECT_EQ(gather.argument, 332u);
  EXPECT_EQ(gather.send, 332u);
  EXPECT_EQ(gather.receive, 996u);
  EXPECT_EQ(gather.send_in_place, 332u);
  EXPECT_EQ(LayoutOf(kScatter, 1000, 4, 3).receive_in_place, 332u);
  EXPECT_EQ(LayoutOf(kAlltoAll, 1000, 1, 3).send, 960u);
  EXPECT_EQ(LayoutOf(kAllReduce, 1000, 4, 3).argument, 1000u);
  EXPECT_EQ(LayoutOf(kSendRecv, 7, 8, 3).receive, 7u);
  EXPECT_EQ(LayoutOf(kReduceScatter, 2, 4, 3).argument, 0u);
}

TEST(AlgorithmBytes, AreNcclTests) {
  EXPECT_EQ(AlgorithmBytes(kAllGather, 100, 4, 4), 1600);
  EXPECT_EQ(AlgorithmBytes(kAllReduce, 100, 4, 4), 400);
  EXPECT_EQ(AlgorithmBytes(kHypercube, 100, 4, 4), 1200);
  EXPECT_EQ(AlgorithmBytes(kAlltoAll, 100, 4, 4), 1600);
  EXPECT_EQ(BusFactor(kAllReduce, 4), 1.5);
  EXPECT_EQ(BusFactor(kAlltoAll, 4), 0.75);
  EXPECT_EQ(BusFactor(kSendRecv, 4), 1);
}

TEST(RunsOn, HypercubeWantsAPowerOfTwo) {
  EXPECT_TRUE(RunsOn(kHypercube, 8));
  EXPECT_FALSE(RunsOn(kHypercube, 6));
  EXPECT_TRUE(RunsOn(kAllReduce, 6));
}

}  // namespace
}  // namespace dynamiccl
