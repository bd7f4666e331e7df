// SPDX-License-Identifier: Apache-2.0
// Tests hybrid sharding: parameters are sharded inside a group and replicated across groups. Also tests the
// second copy of parameters for backward passes.
//
// A sum over R groups of n ranks is (g0 + ... + g(n-1)) + (gn + ...) + ...; plain data parallelism adds all
// gradients one after another. So the two differ by rounding. A plain run on n ranks that accumulates R
// micro-steps, each with the rows of one group, adds the same sums in the same order. It must agree bit for
// bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tests/zero_workloads/checkpoint_runs.h"
#include "tests/zero_workloads/counted_traffic.h"

namespace dynamiccl::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kRankOrder = {{"HOSTCCL_SUM", "rank_order"}};
constexpr int kUsage = 2, kJobFailed = 4;

struct Shape {
  int groups;  // number of replicas
  int shard;   // ranks in a group
  int ranks() const { return groups * shard; }
  Arguments option() const { return {"--shard-group", std::to_string(shard)}; }
};
constexpr Shape kShapes[] = {{2, 2}, {2, 3}, {3, 2}};

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

// Runs plain data parallelism that adds the same gradients in the same order. The mean loss of a step is
// added in another order, so it agrees only up to rounding.
TrainingReport SameSums(const Shape& shape, const Arguments& more) {
  const Arguments accumulation = {"--stage",        "2",
                                  "--accumulation", "sharded",
                                  "--micro-steps",  std::to_string(shape.groups),
                                  "--batch",        std::to_string(12 / shape.groups)};
  return TrainSmall(shape.shard, accumulation + more, kRankOrder);
}

void ExpectSameSums(const Shape& shape, const Arguments& more) {
  const TrainingReport reference = SameSums(shape, more);
  EXPECT_LT(reference.skipped_steps, reference.losses.size()) << "no step changed a parameter";
  for (const char* stage : {"1", "2", "3"}) {
    SCOPED_TRACE(NameOf(shape, std::string("stage ") + stage));
    const TrainingReport hybrid =
        TrainSmall(shape.ranks(), shape.option() + Arguments{"--stage", stage} + more, kRankOrder);
    EXPECT_EQ(hybrid.parameters_sha256, reference.parameters_sha256);
    ExpectNear(hybrid, reference, 5e-6);
  }
}

TEST(HybridSharding, IsToTheBitTheRunThatAddsInTheSameOrder) {
  for (const Shape& shape : kShapes) ExpectSameSums(shape, {});
}

TEST(HybridSharding, IsSoInHalfPrecision) {
  // Both runs sum in fp32. The first steps of fp16 overflow and are skipped.
  ExpectSameSums({2, 2}, {"--dtype", "bf16", "--reduce-type", "fp32"});
  ExpectSameSums({3, 2}, {"--dtype", "fp16", "--reduce-type", "fp32", "--first-loss-scale", "67108864"});
}

TEST(HybridSharding, AgreesWithPlainDataParallelismWithinRounding) {
  for (const Shape& shape : kShapes) {
    for (const char* stage : {"1", "2", "3"}) {
      SCOPED_TRACE(NameOf(shape, std::string("stage ") + stage));
      const TrainingReport plain = TrainSmall(shape.ranks(), {"--stage", stage});
      ExpectNear(TrainSmall(shape.ranks(), shape.option() + Arguments{"--stage", stage}), plain, 1e-5);
    }
  }
}

// A group of one rank sums nothing inside the group, so gradients are summed in the order of stage 0. The
// norm is summed over other parts of the model than in stage 0, so no gradient may be clipped.
TEST(HybridSharding, GroupsOfOneAreStage0ToTheBit) {
  const Arguments unclipped = {"--clip-norm", "1e9"};
  for (const int ranks : {2, 4}) {
    const TrainingReport plain = TrainSmall(ranks, unclipped + Arguments{"--stage", "0"}, kRankOrder);
    for (const char* stage : {"1", "3"}) {
      const TrainingReport hybrid =
          TrainSmall(ranks, unclipped + Arguments{"--stage", stage, "--shard-group", "1"}, kRankOrder);
      EXPECT_EQ(hybrid.losses, plain.losses) << ranks << " ranks, stage " << stage;
      EXPECT_EQ(hybrid.parameters_sha256, plain.parameters_sha256) << ranks << " ranks, stage " << stage;
    }
  }
}

TEST(HybridSharding, AGroupOfAllRanksIsNoHybrid) {
  const TrainingReport plain = TrainSmall(4, {"--stage", "2", "--steps", "10"});
  const TrainingReport all = TrainSmall(4, {"--stage", "2", "--steps", "10", "--shard-group", "4"});
  EXPECT_EQ(all.losses, plain.losses);
  EXPECT_EQ(all.parameters_sha256, plain.parameters_sha256);
}

TEST(HybridSharding, ScheduleAndExchangeChangeNothing) {
  const Arguments run = {"--shard-group", "2", "--steps", "10"};
  const TrainingReport reference = TrainSmall(4, run + Arguments{"--stage", "2"}, kRankOrder);
  for (const Arguments& variant :
       {Arguments{"--stage", "1", "--no-overlap"}, Arguments{"--stage", "2", "--no-overlap"},
        Arguments{"--stage", "2", "--bucket-bytes", "1"}, Arguments{"--stage", "2", "--bucket-bytes", "1G"},
        Arguments{"--stage", "3", "--no-prefetch"}, Arguments{"--stage", "3", "--no-overlap"},
        Arguments{"--stage", "3", "--activation-checkpoints", "full", "--contiguous-pools"}}) {
    const TrainingReport report = TrainSmall(4, run + variant, kRankOrder);
    EXPECT_EQ(report.losses, reference.losses) << ::testing::PrintToString(variant);
    EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << ::testing::PrintToString(variant);
  }
}

TEST(HybridSharding, MicroStepsAreAddedUpBeforeReplicas) {
  const Arguments run = {"--steps", "10", "--micro-steps", "3"};
  const TrainingReport plain = TrainSmall(4, run + Arguments{"--stage", "2"}, kRankOrder);
  for (const char* accumulation : {"local", "sharded"}) {
    const Arguments hybrid = run + Arguments{"--shard-group", "2", "--accumulation", accumulation};
    const TrainingReport second = TrainSmall(4, hybrid + Arguments{"--stage", "2"}, kRankOrder);
    ExpectNear(second, plain, 1e-5);
    const TrainingReport third = TrainSmall(4, hybrid + Arguments{"--stage", "3"}, kRankOrder);
    EXPECT_EQ(third.parameters_sha256, second.parameters_sha256) << accumulation;
  }
  const TrainingReport first =
      TrainSmall(4, run + Arguments{"--shard-group", "2", "--stage", "1"}, kRankOrder);
  const TrainingReport local = TrainSmall(
      4, run + Arguments{"--shard-group", "2", "--stage", "2", "--accumulation", "local"}, kRankOrder);
  EXPECT_EQ(first.parameters_sha256, local.parameters_sha256);
}

TEST(SecondaryShards, ChangeNothing) {
  for (const auto& [ranks, more] : std::vector<std::pair<int, Arguments>>{
           {4, {"--secondary-group", "2"}},
           {4, {"--secondary-group", "1"}},
           {4, {"--secondary-group", "4"}},
           {6, {"--secondary-group", "3", "--no-prefetch"}},
           {4, {"--secondary-group", "2", "--micro-steps", "2"}},
           {4, {"--secondary-group", "2", "--activation-checkpoints", "full"}},
           {4, {"--secondary-group", "2", "--unit", "parameter"}},
           {4, {"--secondary-group", "2", "--dtype", "bf16"}}}) {
    Arguments run = {"--stage", "3", "--steps", "8"}, plain = run;
    run = run + more;
    plain.insert(plain.end(), more.begin() + 2, more.end());
    const TrainingReport reference = TrainSmall(ranks, plain), report = TrainSmall(ranks, run);
    EXPECT_EQ(report.losses, reference.losses) << ::testing::PrintToString(more);
    EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << ::testing::PrintToString(more);
  }
}

TEST(SecondaryShards, MayDivideAShardGroup) {
  const Arguments run = {"--stage", "3", "--steps", "8", "--shard-group", "2", "--eval-every", "3"};
  const TrainingReport reference = TrainSmall(4, run),
                       report = TrainSmall(4, run + Arguments{"--secondary-group", "1"});
  EXPECT_EQ(report.losses, reference.losses);
  EXPECT_EQ(report.held_out_bits_per_byte, reference.held_out_bits_per_byte);
}

TEST(HybridSharding, CheckpointsAreThoseOfAnyOtherRun) {
  const TemporaryFolder place;
  // With a learning rate of 0, the weights stay those of the seed.
  const Arguments run = {"--steps", "1", "--learning-rate", "0", "--stage", "3", "--checkpoint-dir"};
  TrainSmall(1, run + Arguments{(place / "one").string()});
  TrainSmall(4, run + Arguments{(place / "hybrid").string(), "--shard-group", "2"});
  TrainSmall(6, run + Arguments{(place / "six").string(), "--shard-group", "3", "--secondary-group", "3"});
  EXPECT_EQ(Exported(place / "one", 1), Exported(place / "hybrid", 1));
  EXPECT_EQ(Exported(place / "one", 1), Exported(place / "six", 1));
}

TEST(HybridSharding, GoesOnFromACheckpointOfAnyKindAndBack) {
  const TemporaryFolder place;
  const std::filesystem::path folder = place / "checkpoints";
  const Arguments hybrid = {"--shard-group", "2"};
  const TrainingReport whole = TrainSmall(4, Saving(folder) + hybrid + Arguments{"--stage", "2"}, kRankOrder);
  ASSERT_EQ(whole.losses.size(), 8u);
  const auto expect_near_tail = [&](const TrainingReport& rest, size_t from) {
    ASSERT_EQ(rest.losses.size(), 8 - from);
    for (size_t i = 0; i < rest.losses.size(); ++i) {
      EXPECT_NEAR(std::stod(rest.losses[i]), std::stod(whole.losses[from + i]), 1e-5) << "step " << from + i;
    }
  };
  for (const Arguments& other :
       {Arguments{"--stage", "3"}, Arguments{"--stage", "3", "--secondary-group", "2"},
        Arguments{"--stage", "1", "--checkpoint-async"}}) {
    ExpectContinues(whole,
                    TrainSmall(4, Saving(folder) + hybrid + other + Arguments{"--resume", "4"}, kRankOrder),
                    ::testing::PrintToString(other));
  }
  // Each run continues from step 4 or 6 of the run before it.
  expect_near_tail(TrainSmall(4, Saving(folder) + Arguments{"--stage", "1", "--resume", "4"}), 4);
  expect_near_tail(
      TrainSmall(6, Saving(folder) + Arguments{"--stage", "3", "--shard-group", "3", "--resume", "6"}), 6);
  expect_near_tail(TrainSmall(1, Saving(folder) + Arguments{"--resume", "6"}), 6);
}

// The small model has 2 blocks, hidden size 64, sequence length 32 and a vocabulary of 256 bytes. Each shard
// is a multiple of 128 elements.
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

// Communicator 1 is the shard group and communicator 2 the replicas, in the order in which they are split
// off.
TEST(HybridVolume, ScattersInTheGroupAndSumsShardsOverReplicas) {
  for (const Shape& shape : kShapes) {
    const Sizes sizes = SizesAt(shape.shard);
    for (const int stage : {1, 2, 3}) {
      SCOPED_TRACE(NameOf(shape, "stage " + std::to_string(stage)));
      for (TrafficByFunction traffic :
           CountTraffic(shape.ranks(), shape.option() + Arguments{"--stage", std::to_string(stage), "--steps",
                                                                  std::to_string(kSteps)})) {
        EXPECT_EQ(traffic["ReduceScatter.1"].elements, kSteps * sizes.psi());
        EXPECT_EQ(traffic["ReduceScatter.1"].calls, kSteps * Buckets(shape.shard));
        EXPECT_EQ(traffic["AllReduce.2"].elements, kSteps * sizes.psi() / shape.shard);
        EXPECT_EQ(traffic["AllReduce.2"].calls, kSteps * Buckets(shape.shard));
        // The digest at the end gathers all parameters once more.
        const long gathered = stage < 3 ? sizes.psi() : 2 * sizes.psi() - sizes.root;
        EXPECT_EQ(traffic["AllGather.1"].elements, kSteps * gathered + sizes.psi());
        EXPECT_EQ(traffic["AllGather.2"].calls + traffic["ReduceScatter.2"].calls, 0);
        EXPECT_EQ(traffic["AllReduce"].elements, 2 * kSteps);
        EXPECT_EQ(traffic["AllGather"].calls + traffic["ReduceScatter"].calls, 0);
      }
    }
  }
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

TEST(HybridMemory, IsThatOfTheShardGroup) {
  for (const char* type : {"fp32", "bf16"}) {
    const int64_t element = std::string(type) == "fp32" ? 4 : 2;
    for (const int stage : {1, 2, 3}) {
      SCOPED_TRACE(std::string(type) + ", stage " + std::to_string(stage));
      const MemoryReport memory = TrainSmall(4, {"--shard-group", "2", "--stage", std::to_string(stage),
                                                 "--dtype", type, "--steps", "2"})
                                      .memory;
      const int64_t psi = SizesAt(2).psi(), own = psi / 2;
      const int64_t copy = element == 4 ? 0 : element * own;  // in fp32 the master weights are the parameters
      EXPECT_EQ(memory.current.at("parameters"), (stage < 3 ? element * psi : 0) + copy);
      EXPECT_EQ(memory.current.at("gradients"), element * own);
      EXPECT_EQ(memory.current.at("master"), 4 * own);
      EXPECT_EQ(memory.current.at("moments"), 8 * own);
      const int64_t capacity = std::min((kBucketBytes / element / 2 + 127) / 128 * 128, own);
      EXPECT_EQ(memory.peak.at("buckets"), 2 * element * 2 * capacity);
      EXPECT_EQ(memory.peak.at("gathered"),
                stage == 3 ? element * (SizesAt(2).root + 2 * SizesAt(2).block) : 0);
    }
  }
}

TEST(HybridMemory, SecondCopyIsOfBlocksAlone) {
  const auto parameters = [](const Arguments& more) {
    const Arguments run = {"--stage", "3", "--dtype", "bf16", "--steps", "2"};
    return TrainSmall(6, run + more).memory.current.at("parameters");
  };
  const int64_t plain = parameters({}), blocks = kBlocks * SizesAt(6).block;
  EXPECT_EQ(plain, 2 * SizesAt(6).psi() / 6);
  for (const int group : {1, 2, 3, 6}) {
    EXPECT_EQ(parameters({"--secondary-group", std::to_string(group)}), plain + 2 * blocks / group);
  }
}

void ExpectRefused(int ranks, const Arguments& options, const std::string& message, const std::string& hint) {
  for (const RankOutcome& rank : RunRanks({.ranks = ranks, .arguments = SmallModel() + options})) {
    EXPECT_EQ(rank.exit_code, kUsage) << rank.output;
    EXPECT_THAT(rank.output, AllOf(HasSubstr(message), HasSubstr(hint)));
  }
}

TEST(HybridInput, WrongSizesAreRefused) {
  const Arguments stage2 = {"--stage", "2"}, stage3 = {"--stage", "3"};
  ExpectRefused(6, stage2 + Arguments{"--shard-group", "4"}, "--shard-group 4 does not divide 6 data rank(s)",
                "these do: 1, 2, 3, 6");
  ExpectRefused(2, stage2 + Arguments{"--shard-group", "4"}, "--shard-group 4 does not divide 2 data rank(s)",
                "these do: 1, 2");
  ExpectRefused(4, stage2 + Arguments{"--shard-group", "4", "--tensor-parallel", "2"},
                "--shard-group 4 does not divide 2 data rank(s)", "these do: 1, 2");
  ExpectRefused(1, stage2 + Arguments{"--shard-group", "-2"}, "--shard-group -2 is out of range",
                "at least 0");
  ExpectRefused(1, {"--shard-group", "1"}, "--shard-group 1: stage 0 divides nothing",
                "give --stage 1, 2 or 3");
  ExpectRefused(1, stage2 + Arguments{"--secondary-group", "1"},
                "--secondary-group 1: stage 2 gathers no parameters", "it is for --stage 3");
  ExpectRefused(6, stage3 + Arguments{"--secondary-group", "4"},
                "--secondary-group 4 does not divide the 6 rank(s)", "these do: 1, 2, 3, 6");
  ExpectRefused(6, stage3 + Arguments{"--secondary-group", "3", "--shard-group", "2"},
                "--secondary-group 3 does not divide the 2 rank(s)", "these do: 1, 2");
}

TEST(HybridRun, RanksOfAllGroupsEndWhenOneDies) {
  const TemporaryFolder folder;
  const std::string json = (folder / "report.json").string();
  Launch launch{.ranks = 4, .arguments = SmallModel()};
  std::replace(launch.arguments.begin(), launch.arguments.end(), std::string("30"), std::string("1000000"));
  launch.arguments = launch.arguments + Arguments{"--shard-group", "2", "--stage", "3", "--json", json};
  launch.environment = {{"HOSTCCL_TIMEOUT_MS", "5000"}};
  RankProcesses ranks(launch);
  // The file's first line shows that training has begun. The launch's time limit bounds this loop.
  while (std::ifstream(json).peek() == std::ifstream::traits_type::eof()) std::this_thread::yield();
  ranks.Kill(3, SIGKILL);
  const std::vector<RankOutcome> outcomes = ranks.Wait();
  for (const size_t survivor : {0, 1, 2}) {
    EXPECT_EQ(outcomes[survivor].exit_code, kJobFailed) << outcomes[survivor].output;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
