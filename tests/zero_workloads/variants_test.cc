// SPDX-License-Identifier: Apache-2.0
// Tests other ways to exchange the same numbers. None may change a bit of the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using Arguments = std::vector<std::string>;

Arguments Joined(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TrainingReport Train(int ranks, Arguments arguments) {
  arguments.insert(arguments.end(), {"--steps", "10"});
  return TrainSmall(ranks, arguments, {{"HOSTCCL_SUM", "rank_order"}});
}

void ExpectEqual(const TrainingReport& reference, int ranks, const Arguments& arguments) {
  const TrainingReport report = Train(ranks, arguments);
  ASSERT_EQ(reference.losses.size(), 10u);
  EXPECT_EQ(report.losses, reference.losses) << arguments[1] << " on " << ranks;
  EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << arguments[1] << " on " << ranks;
}

void ExpectNear(const TrainingReport& report, const TrainingReport& reference) {
  ASSERT_EQ(report.losses.size(), reference.losses.size());
  for (size_t step = 0; step < report.losses.size(); ++step)
    EXPECT_NEAR(std::stod(report.losses[step]), std::stod(reference.losses[step]), 1e-5);
}

TEST(Variants, OwnersReduceAndBroadcastTheirParts) {
  for (const int ranks : {2, 3}) {
    const TrainingReport reference = Train(ranks, {"--stage", "0"});
    for (const char* stage : {"1", "2", "3"})
      ExpectEqual(reference, ranks, {"--stage", stage, "--exchange", "owner"});
  }
}

// Buckets are allocated by ncclMemAlloc and registered, on each rank alone or as windows of all ranks. The
// test also covers cases in which several buckets, replicas, other sums or no buckets use this memory. The
// counted memory must stay the same.
TEST(Variants, RegisteredBuckets) {
  for (const Arguments& run :
       std::vector<Arguments>{{"--stage", "0"},
                              {"--stage", "1", "--exchange", "all_reduce"},
                              {"--stage", "2", "--shard-group", "2", "--dtype", "bf16"},
                              {"--stage", "3", "--micro-steps", "2"},
                              {"--stage", "2", "--unit", "parameter"},
                              {"--stage", "3", "--exchange", "layer_owner"}}) {
    const TrainingReport reference = Train(4, Joined({"--layers", "4"}, run));
    for (const char* const memory : {"registered", "window"}) {
      const Arguments arguments = Joined({"--bucket-memory", memory, "--layers", "4"}, run);
      ExpectEqual(reference, 4, arguments);
      EXPECT_EQ(Train(4, arguments).memory.peak.at("buckets"), reference.memory.peak.at("buckets"));
    }
  }
}

// Rank i mod N owns the whole unit i. Nothing may be clipped, because the norm is summed over other parts of
// the model.
TEST(Variants, OneOwnerForEachUnit) {
  const Arguments model = {"--layers", "4", "--clip-norm", "1e9"};
  const TrainingReport alone = Train(1, Joined({"--stage", "0"}, model));
  for (const int ranks : {2, 3, 4}) {
    const TrainingReport reference = Train(ranks, Joined({"--stage", "0"}, model));
    ExpectNear(reference, alone);
    for (const char* stage : {"1", "2", "3"}) {
      const Arguments run = Joined({"--stage", stage, "--exchange", "layer_owner"}, model);
      ExpectEqual(reference, ranks, run);
      ExpectEqual(reference, ranks, Joined(run, {"--no-overlap", "--no-prefetch"}));
      ExpectEqual(reference, ranks, Joined(run, {"--unit", "half_block"}));
      ExpectEqual(reference, ranks, Joined(run, {"--unit", "parameter"}));
    }
  }
}

TEST(Variants, OneOwnerForEachUnitWithOtherOptions) {
  const Arguments model = {"--layers", "4", "--clip-norm", "1e9"}, owner = {"--exchange", "layer_owner"};
  const TemporaryFolder folder;
  for (const Arguments& more :
       std::vector<Arguments>{{"--stage", "2", "--micro-steps", "2", "--dtype", "bf16"},
                              {"--stage", "3", "--micro-steps", "2", "--accumulation", "local"},
                              {"--stage", "1", "--offload-optimizer", "nvme:" + (folder / "").string(),
                               "--offload-buffer-bytes", "4096"},
                              {"--stage", "3", "--secondary-group", "2", "--prefetch-units", "2"},
                              {"--stage", "3", "--tensor-parallel", "2"}}) {
    const TrainingReport reference = Train(4, Joined(model, more));
    ExpectEqual(reference, 4, Joined(Joined(more, model), owner));
  }
}

// If each parameter is a unit, there are 18 units. So some of 24 ranks own nothing.
TEST(Variants, OwnersOfNothingOffloadTheirStatesToo) {
  const TemporaryFolder folder;
  const Arguments run = {"--exchange", "layer_owner", "--unit", "parameter", "--stage",
                         "1",          "--batch",     "24",     "--layers",  "1"};
  const TrainingReport reference = Train(24, run);
  ExpectEqual(reference, 24, Joined(run, {"--offload-optimizer", "nvme:" + (folder / "").string()}));
}

// A run in which ranks own whole units can continue a run with shards, and vice versa.
TEST(Variants, CheckpointsOfOwnersAreThoseOfAnyOtherRun) {
  const TemporaryFolder folder;
  const Arguments run = {"--layers", "4", "--clip-norm", "1e9", "--stage", "2"};
  const Arguments owner = {"--exchange", "layer_owner"};
  const TrainingReport whole = Train(2, run);
  for (const bool owners_first : {true, false}) {
    const Arguments saving = {"--checkpoint-dir", (folder / (owners_first ? "a" : "b")).string(),
                              "--checkpoint-every", "5"};
    const Arguments first = Joined(run, saving), resumed = Joined(first, {"--resume", "5"});
    EXPECT_EQ(Train(2, owners_first ? Joined(first, owner) : first).parameters_sha256,
              whole.parameters_sha256);
    const TrainingReport rest = Train(2, owners_first ? resumed : Joined(resumed, owner));
    EXPECT_EQ(rest.losses.size(), 5u);
    EXPECT_EQ(rest.parameters_sha256, whole.parameters_sha256) << owners_first;
  }
}

// Each rank receives all sums and keeps its own part. So results equal those of stage 0 bit for bit. They
// equal those of one rank up to rounding.
TEST(Variants, StagesThatSumGradientsByAllReduce) {
  for (const int ranks : {2, 4}) {
    const TrainingReport reference = Train(ranks, {"--stage", "0"}), alone = Train(1, {"--stage", "0"});
    for (const char* stage : {"1", "2"})
      ExpectEqual(reference, ranks, {"--stage", stage, "--exchange", "all_reduce"});
    ExpectNear(reference, alone);
  }
  const Arguments micro = {"--micro-steps", "2", "--dtype", "bf16", "--reduce-type", "fp32"};
  const TrainingReport scattered = Train(2, Joined({"--stage", "2"}, micro));
  ExpectEqual(scattered, 2, Joined({"--stage", "2", "--exchange", "all_reduce"}, micro));
  const TrainingReport hybrid = Train(4, {"--stage", "2", "--shard-group", "2"});
  ExpectEqual(hybrid, 4, {"--stage", "1", "--shard-group", "2", "--exchange", "all_reduce"});
  ExpectEqual(hybrid, 4, {"--stage", "2", "--shard-group", "2", "--exchange", "all_reduce", "--no-overlap"});
}

// Shards are sent while the optimizer works on other sub-groups, in memory and in files.
TEST(Variants, ShardsGatheredDuringTheOptimizerStep) {
  const TemporaryFolder folder;
  const Arguments files = {"--offload-optimizer", "nvme:" + (folder / "").string(), "--offload-buffer-bytes",
                           "4096"};
  const TrainingReport alone = Train(1, {"--stage", "0"});
  for (const int ranks : {2, 4}) {
    const TrainingReport reference = Train(ranks, {"--stage", "0"});
    ExpectNear(reference, alone);
    for (const char* stage : {"1", "2"}) {
      ExpectEqual(reference, ranks, {"--stage", stage});
      ExpectEqual(reference, ranks, {"--stage", stage, "--no-overlap"});
      ExpectEqual(reference, ranks, Joined({"--stage", stage}, files));
    }
    const TrainingReport bf16 = Train(ranks, {"--stage", "3", "--dtype", "bf16"});
    ExpectEqual(bf16, ranks, {"--stage", "1", "--dtype", "bf16"});
    ExpectEqual(bf16, ranks, Joined({"--stage", "2", "--dtype", "bf16"}, files));
  }
}

TEST(Variants, AnExchangeThatTheStageDoesNotHaveIsRefused) {
  for (const char* stage : {"0", "3"}) {
    Arguments arguments = Joined(SmallModel(), {"--stage", stage, "--exchange", "all_reduce"});
    const RankOutcome rank = RunRanks({.ranks = 1, .arguments = arguments})[0];
    EXPECT_EQ(rank.exit_code, 2);
    EXPECT_THAT(rank.output, ::testing::HasSubstr("--exchange all_reduce is for stages 1 and 2"));
    EXPECT_THAT(rank.output, ::testing::HasSubstr("give --stage 1 or 2"));
  }
}

// Nothing may be clipped, because other units mean that the norm is summed over other parts of the model.
TEST(Variants, UnitsOfSeveralBlocksAndOfHalves) {
  const Arguments model = {"--layers", "5", "--clip-norm", "1e9"};
  const TrainingReport alone = Train(1, Joined({"--stage", "0"}, model));
  for (const int ranks : {2, 4}) {
    const TrainingReport reference = Train(ranks, Joined({"--stage", "0"}, model));
    ExpectNear(reference, alone);
    for (const char* stage : {"0", "1", "2", "3"}) {
      const Arguments run = Joined({"--stage", stage}, model);
      ExpectEqual(reference, ranks, Joined(run, {"--unit-blocks", "2"}));
      ExpectEqual(reference, ranks, Joined(run, {"--unit", "half_block"}));
    }
    const Arguments run = Joined({"--stage", "3"}, model);
    for (const char* blocks : {"3", "5"})
      ExpectEqual(reference, ranks, Joined(run, {"--unit-blocks", blocks, "--no-prefetch"}));
    ExpectEqual(reference, ranks, Joined(run, {"--unit", "half_block", "--prefetch-units", "3"}));
    for (const char* checkpoints : {"full", "none"}) {
      const Arguments kept = {"--activation-checkpoints", checkpoints, "--contiguous-pools"};
      ExpectEqual(reference, ranks, Joined(Joined(run, kept), {"--unit", "half_block"}));
      ExpectEqual(reference, ranks, Joined(Joined(run, kept), {"--unit-blocks", "2"}));
    }
  }
}

TEST(Variants, OwnersThatContradictOtherOptionsAreRefused) {
  const auto refused = [](int ranks, const Arguments& more, const std::string& message) {
    const Arguments run = Joined({"--exchange", "layer_owner"}, more);
    for (const RankOutcome& rank : RunRanks({.ranks = ranks, .arguments = Joined(SmallModel(), run)})) {
      EXPECT_EQ(rank.exit_code, 2) << rank.output;
      EXPECT_THAT(rank.output, ::testing::HasSubstr(message));
    }
  };
  refused(1, {"--stage", "0"}, "in stage 0 every rank owns everything");
  refused(1, {"--stage", "2", "--live"}, "without the buckets that --live changes");
  refused(4, {"--stage", "2", "--shard-group", "2"}, "without --shard-group");
  refused(4, {"--stage", "2"}, "4 data ranks, of which each owns a unit, and 3 unit(s)");
}

TEST(Variants, UnitsThatContradictOtherOptionsAreRefused) {
  const auto refused = [](const Arguments& more, const std::string& message) {
    const RankOutcome rank = RunRanks({.ranks = 1, .arguments = Joined(SmallModel(), more)})[0];
    EXPECT_EQ(rank.exit_code, 2) << rank.output;
    EXPECT_THAT(rank.output, ::testing::HasSubstr(message));
  };
  refused({"--unit-blocks", "0"}, "--unit-blocks 0 is out of range: at least 1");
  refused({"--unit-blocks", "3"}, "--unit-blocks 3: the model has 2 block(s)");
  refused({"--unit-blocks", "2", "--unit", "parameter"}, "only whole blocks are grouped");
  refused({"--unit-blocks", "2", "--unit", "half_block"}, "only whole blocks are grouped");
  refused({"--unit", "third"}, "--unit third: one of block, half_block, parameter");
  refused({"--unit", "half_block", "--activation-checkpoints", "auto", "--memory-cap", "64M"},
          "its estimate is of whole blocks");
}

TEST(Variants, OneCollectiveAParameter) {
  const TrainingReport reference = Train(2, {"--stage", "0", "--unit", "parameter"});
  for (const char* stage : {"1", "2", "3"})
    ExpectEqual(reference, 2, {"--stage", stage, "--unit", "parameter"});
  ExpectEqual(reference, 2, {"--stage", "3", "--unit", "parameter", "--exchange", "owner", "--no-prefetch"});
  // Shards are other parts of the parameters than with blocks as units, so the norm is added in another
  // order.
  ExpectNear(Train(2, {"--stage", "0"}), reference);
}

}  // namespace
}  // namespace dynamiccl::zero
