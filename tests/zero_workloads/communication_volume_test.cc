// SPDX-License-Identifier: Apache-2.0
// Compares the traffic of each stage, counted at the NCCL boundary, with the volumes of the ZeRO paper
// (section 7). An AllReduce of all gradients counts 2 Psi, a ReduceScatter or AllGather of all parameters
// Psi. So the stages move 2, 2, 2 and 3 Psi. Stage 3 keeps the root through the backward pass and gathers it
// once, so it moves 3 Psi - root.
#include <gtest/gtest.h>

#include "tests/zero_workloads/counted_traffic.h"

namespace dynamiccl::zero {
namespace {

// The small model has 2 blocks, hidden size 64, sequence length 32 and a vocabulary of 256 bytes.
constexpr long kBlocks = 2, kHidden = 64, kSequence = 32, kVocabulary = 256;
constexpr long kSteps = 4, kBucketBytes = 65536;

// Returns a unit's number of elements on `ranks` ranks. Each shard is a multiple of 128 elements. Every
// parameter of this model is a multiple of 32, so there is no padding between parameters.
long Padded(long elements, long ranks) {
  const long multiple = 128 * ranks;
  return (elements + multiple - 1) / multiple * multiple;
}

long Block(long ranks) {
  return Padded(12 * kHidden * kHidden + 13 * kHidden, ranks);
}

long Root(long ranks) {
  const long embeddings = (kVocabulary + kSequence) * kHidden, norm = 2 * kHidden;
  return Padded(embeddings + norm + kVocabulary * kHidden + kVocabulary, ranks);
}

long Psi(long ranks) {
  return Root(ranks) + kBlocks * Block(ranks);
}

long Buckets(long ranks) {
  const long capacity = kBucketBytes / 4;  // fp32
  return (Psi(ranks) + capacity - 1) / capacity;
}

// Counts the traffic of a run. All ranks must have the same.
TrafficByFunction Count(int ranks, const std::string& stage, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--stage", stage, "--steps", std::to_string(kSteps)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::vector<TrafficByFunction> counted = CountTraffic(ranks, arguments);
  for (const TrafficByFunction& traffic : counted) {
    for (const auto& [name, one] : traffic) EXPECT_EQ(one.elements, counted[0].at(name).elements) << name;
  }
  return counted.empty() ? TrafficByFunction{} : counted[0];
}

// In each step, one AllReduce of 2 elements sums the loss and the gradient norm. At the end, the digest
// gathers all master weights once.
constexpr long kScalars = 2 * kSteps;

TEST(CommunicationVolume, Stage0ReducesEverythingEverywhere) {
  for (const int ranks : {2, 3}) {
    TrafficByFunction traffic = Count(ranks, "0");
    EXPECT_EQ(traffic["AllReduce"].elements, kSteps * Psi(ranks) + kScalars);
    EXPECT_EQ(traffic["AllReduce"].calls, kSteps * (Buckets(ranks) + 1));
    EXPECT_EQ(traffic["ReduceScatter"].calls, 0);
    EXPECT_EQ(traffic["AllGather"].calls, 0);
  }
}

TEST(CommunicationVolume, Stages1And2ScatterGradientsAndGatherParameters) {
  for (const char* stage : {"1", "2"}) {
    TrafficByFunction traffic = Count(3, stage);
    EXPECT_EQ(traffic["ReduceScatter"].elements, kSteps * Psi(3));
    EXPECT_EQ(traffic["ReduceScatter"].calls, kSteps * Buckets(3));
    EXPECT_EQ(traffic["AllGather"].elements, kSteps * Psi(3) + Psi(3));
    EXPECT_EQ(traffic["AllGather"].calls, (kSteps + 1) * (kBlocks + 1));
    EXPECT_EQ(traffic["AllReduce"].elements, kScalars);
  }
}

// An AllReduce of all gradients moves 2 Psi and the AllGather of all parameters Psi, so 3 Psi in total. With
// ReduceScatter the total is 2 Psi.
TEST(CommunicationVolume, Stages1And2WithAllReduceSendOnePsiMore) {
  for (const char* stage : {"1", "2"}) {
    TrafficByFunction traffic = Count(2, stage, {"--exchange", "all_reduce"});
    EXPECT_EQ(traffic["AllReduce"].elements, kSteps * Psi(2) + kScalars);
    EXPECT_EQ(traffic["AllReduce"].calls, kSteps * (Buckets(2) + 1));
    EXPECT_EQ(traffic["ReduceScatter"].calls, 0);
    EXPECT_EQ(traffic["AllGather"].elements, kSteps * Psi(2) + Psi(2));
  }
}

// Each layer has one owner, as many texts on ZeRO describe it. The owner receives the layer's gradients and
// sends its parameters. The volume is the same as with shards.
TEST(CommunicationVolume, OwnersOfWholeUnitsReduceAndBroadcastEachOnce) {
  for (const char* stage : {"1", "2", "3"}) {
    TrafficByFunction traffic = Count(3, stage, {"--exchange", "layer_owner"});
    const long gathers = std::string(stage) == "3" ? 2 * Psi(3) - Root(3) : Psi(3);
    const long calls = std::string(stage) == "3" ? 2 * kBlocks + 1 : kBlocks + 1;
    EXPECT_EQ(traffic["Reduce"].elements, kSteps * Psi(3));
    EXPECT_EQ(traffic["Reduce"].calls, kSteps * (kBlocks + 1));
    EXPECT_EQ(traffic["Broadcast"].elements, kSteps * gathers + Psi(3));
    EXPECT_EQ(traffic["Broadcast"].calls, kSteps * calls + kBlocks + 1);
    EXPECT_EQ(traffic["ReduceScatter"].calls + traffic["AllGather"].calls, 0);
  }
}

// Two units of two blocks each: the volume is that of four blocks, and the number of calls that of two.
TEST(CommunicationVolume, GroupsOfBlocksTakeFewerCalls) {
  TrafficByFunction blocks = Count(2, "3", {"--layers", "4"}),
                    groups = Count(2, "3", {"--layers", "4", "--unit-blocks", "2"}),
                    halves = Count(2, "3", {"--layers", "4", "--unit", "half_block"});
  EXPECT_EQ(blocks["AllGather"].calls, kSteps * (2 * 4 + 1) + 4 + 1);
  EXPECT_EQ(groups["AllGather"].calls, kSteps * (2 * 2 + 1) + 2 + 1);
  EXPECT_EQ(halves["AllGather"].calls, kSteps * (2 * 8 + 1) + 8 + 1);
  const auto psi = [](long units, long of_unit) { return Root(2) + units * Padded(of_unit, 2); };
  const long block = 12 * kHidden * kHidden + 13 * kHidden;
  EXPECT_EQ(blocks["ReduceScatter"].elements, kSteps * psi(4, block));
  EXPECT_EQ(groups["ReduceScatter"].elements, kSteps * psi(2, 2 * block));
  EXPECT_EQ(groups["AllGather"].elements, kSteps * (2 * psi(2, 2 * block) - Root(2)) + psi(2, 2 * block));
}

TEST(CommunicationVolume, Stage3GathersBlocksTwice) {
  for (const int ranks : {2, 4}) {
    TrafficByFunction traffic = Count(ranks, "3");
    EXPECT_EQ(traffic["ReduceScatter"].elements, kSteps * Psi(ranks));
    EXPECT_EQ(traffic["AllGather"].elements, kSteps * (2 * Psi(ranks) - Root(ranks)) + Psi(ranks));
    EXPECT_EQ(traffic["AllGather"].calls, kSteps * (2 * kBlocks + 1) + kBlocks + 1);
    EXPECT_EQ(traffic["AllReduce"].elements, kScalars);
  }
}

}  // namespace
}  // namespace dynamiccl::zero
