// SPDX-License-Identifier: Apache-2.0
// Hybrid sharding: shard inside a group, replicate across groups; and a second copy of parameters for
// backward passes.
//
// A sum over R groups of n ranks is (g0 + ... + g(n-1)) + (gn + ...) + ..., where plain data parallelism adds
// N = R n gradients one after another: the two differ by rounding. The same sum in the same order is that of
// a plain run on n ranks that adds up R micro-steps of one group's rows each: equal to the bit.
#include <gtest/gtest.h>

#include "tests/zero_workloads/checkpoint_runs.h"
#include "tests/zero_workloads/counted_traffic.h"

namespace dynamiccl::zero {
namespace {

const std::map<std::string, std::string> kRankOrder = {{"HOSTCCL_SUM", "rank_order"}};

struct Shape {
  int groups;  // replicas
  int shard;   // ranks of a group
  int ranks() const { return groups * shard; }
  Arguments option() const { return {"--shard-group", std::to_string(shard)}; }
};

std::string NameOf(const Shape& shape, const std::string& what) {
  return std::to_string(shape.groups) + " x " + std::to_string(shape.shard) + ", " + what;
}

void ExpectNear(const TrainingReport& report, const TrainingReport& reference, double tolerance) {
  ASSERT_EQ(report.losses.size(), reference.losses.size());
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    EXPECT_NEAR(std::stod(report.losses[step]), std::stod(reference.losses[step]), tolerance)
        << "step " << step;
  }
}

// A plain run whose gradients are the same sums in the same order. Of its losses only the mean over a step is
// the same, and that but for rounding.
TrainingReport SameSums(const Shape& shape, const Arguments& more) {
  const Arguments accumulation = {"--stage",        "2",
                                  "--accumulation", "sharded",
                                  "--micro-steps",  std::to_string(shape.groups),
                                  "--batch",        std::to_string(12 / shape.groups)};
  return TrainSmall(shape.shard, accumulation + more, kRankOrder);
}

void ExpectSameSums(const Shape& shape, const Arguments& more) {
  const TrainingReport reference = SameSums(shape, more);
  for (const char* stage : {"2", "3"}) {
    SCOPED_TRACE(NameOf(shape, std::string("stage ") + stage));
    const TrainingReport hybrid =
        TrainSmall(shape.ranks(), shape.option() + Arguments{"--stage", stage} + more, kRankOrder);
    EXPECT_EQ(hybrid.parameters_sha256, reference.parameters_sha256);
    ExpectNear(hybrid, reference, 5e-6);
  }
}

TEST(HybridSharding, IsToTheBitTheRunThatAddsInTheSameOrder) {
  ExpectSameSums({2, 2}, {"--steps", "10"});
}

TEST(HybridSharding, CheckpointsAreThoseOfAnyOtherRun) {
  const TemporaryFolder place;
  // A rate of 0: the weights stay those of the seed.
  const Arguments run = {"--steps", "1", "--learning-rate", "0", "--stage", "3", "--checkpoint-dir"};
  TrainSmall(1, run + Arguments{(place / "one").string()});
  TrainSmall(4, run + Arguments{(place / "hybrid").string(), "--shard-group", "2"});
  TrainSmall(6, run + Arguments{(place / "six").string(), "--shard-group", "3", "--secondary-group", "3"});
  EXPECT_EQ(Exported(place / "one", 1), Exported(place / "hybrid", 1));
  EXPECT_EQ(Exported(place / "one", 1), Exported(place / "six", 1));
}

// The small model: 2 blocks, hidden 64, sequence 32, 256 bytes; each shard is a multiple of 128 elements.
constexpr long kBlocks = 2, kHidden = 64, kSequence = 32, kVocabulary = 256, kSteps = 3, kBucketBytes = 65536;

struct Sizes {
  long block, root;
  long psi() const { return root + kBlocks * block; }
};

Sizes SizesAt(long ranks) {
  const auto padded = [&](long elements) {
    return (elements + 128 * ranks - 1) / (128 * ranks) * (128 * ranks);
  };
  return {padded(12 * kHidden * kHidden + 13 * kHidden),
          padded((2 * kVocabulary + kSequence + 2) * kHidden + kVocabulary)};
}

long Buckets(long ranks) {
  const long capacity = (kBucketBytes / 4 / ranks + 127) / 128 * 128;
  return (SizesAt(ranks).psi() / ranks + capacity - 1) / capacity;
}

TEST(HybridVolume, ReplicasAreSummedOnceAStep) {
  for (const auto& [stage, scatters] : {std::pair{1, 1}, {2, 3}, {3, 3}}) {
    for (TrafficByFunction traffic :
         CountTraffic(4, {"--shard-group", "2", "--stage", std::to_string(stage), "--steps",
                          std::to_string(kSteps), "--micro-steps", "3"})) {
      EXPECT_EQ(traffic["ReduceScatter.1"].elements, kSteps * scatters * SizesAt(2).psi());
      EXPECT_EQ(traffic["AllReduce.2"].elements, kSteps * SizesAt(2).psi() / 2);
      EXPECT_EQ(traffic["AllReduce.2"].calls, kSteps * (stage == 1 ? Buckets(2) : 1));
    }
  }
}

TEST(HybridVolume, BackwardGathersAreInTheSecondaryGroup) {
  const Sizes sizes = SizesAt(6);
  for (TrafficByFunction traffic :
       CountTraffic(6, {"--secondary-group", "2", "--stage", "3", "--steps", std::to_string(kSteps)})) {
    EXPECT_EQ(traffic["AllGather"].elements, (kSteps + 1) * sizes.psi());
    EXPECT_EQ(traffic["AllGather.1"].elements, kSteps * kBlocks * sizes.block);
    EXPECT_EQ(traffic["AllGather.1"].calls, kSteps * kBlocks);
    EXPECT_EQ(traffic["ReduceScatter"].elements, kSteps * sizes.psi());
    EXPECT_EQ(traffic["ReduceScatter.1"].calls + traffic["AllReduce.1"].calls, 0);
  }
}

}  // namespace
}  // namespace dynamiccl::zero
