// SPDX-License-Identifier: Apache-2.0
// Tests steps of several micro-steps. Their losses must agree with those of one batch of the same rows. Their
// calls must agree with the trace generator and with the formulas of docs/zero_memory.md.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/zero_stages.h"
#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using Arguments = std::vector<std::string>;

struct Call {
  std::string function;
  size_t elements = 0;
  bool operator==(const Call&) const = default;
};
using Calls = std::vector<Call>;

constexpr int kSteps = 3, kMicroSteps = 2, kBlocks = 2, kRanks = 2;

Arguments Accumulating(const std::string& stage) {
  return {"--stage", stage, "--micro-steps", std::to_string(kMicroSteps), "--steps", "10"};
}

TrainingReport TrainAccumulating(const std::string& stage, const Arguments& more = {}) {
  Arguments arguments = Accumulating(stage);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return TrainSmall(kRanks, arguments);
}

void ExpectEqual(const TrainingReport& reference, const TrainingReport& report, const std::string& what) {
  ASSERT_EQ(reference.losses.size(), 10u);
  EXPECT_EQ(reference.losses, report.losses) << what;
  EXPECT_EQ(reference.parameters_sha256, report.parameters_sha256) << what;
}

// Sums in another order differ by rounding errors of 2^-24, which 10 steps amplify.
void ExpectNear(const TrainingReport& reference, const TrainingReport& report, const std::string& what) {
  ASSERT_EQ(reference.losses.size(), 10u);
  ASSERT_EQ(report.losses.size(), 10u);
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    EXPECT_NEAR(std::stod(reference.losses[step]), std::stod(report.losses[step]), 1e-5)
        << what << ", step " << step;
  }
}

// Returns the calls of a rank. All ranks must make the same.
Calls Issued(const std::string& stage) {
  const TemporaryFolder folder;
  TrainSmall(
      kRanks,
      {"--stage", stage, "--micro-steps", std::to_string(kMicroSteps), "--steps", std::to_string(kSteps)},
      {{"COUNT_NCCL_SEQUENCE", (folder / "calls").string()}}, COUNT_NCCL_LIBRARY);
  std::vector<Calls> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    Calls calls;
    std::ifstream file(entry.path());
    for (Call call; file >> call.function >> call.elements;) calls.push_back(call);
    if (!calls.empty()) ranks.push_back(calls);
  }
  EXPECT_EQ(ranks.size(), static_cast<size_t>(kRanks));
  for (const Calls& calls : ranks) EXPECT_EQ(calls, ranks[0]);
  return ranks.empty() ? Calls{} : ranks[0];
}

const char* FunctionOf(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "AllReduce";
    case Collective::kReduceScatter:
      return "ReduceScatter";
    case Collective::kAllGather:
      return "AllGather";
    default:
      return "another";
  }
}

Calls Generated(int stage) {
  // The workload has the shape of SmallModel().
  ZeroWorkload workload;
  workload.stage = stage;
  workload.layers = kBlocks;
  workload.hidden = 64;
  workload.sequence = 32;
  workload.world = kRanks;
  workload.bucket_bytes = 65536;
  workload.steps = kSteps;
  workload.micro_steps = kMicroSteps;
  Calls calls;
  for (const IssuedCall& issued : GenerateZeroCalls(workload)) {
    calls.push_back({FunctionOf(issued.call.collective), issued.call.bytes / sizeof(float)});
  }
  return calls;
}

TEST(GradientAccumulation, StagesAgree) {
  const TrainingReport replicated = TrainAccumulating("0"), sharded = TrainAccumulating("2");
  ExpectEqual(replicated, TrainAccumulating("1"), "stage 1 against stage 0");
  ExpectEqual(sharded, TrainAccumulating("3"), "stage 3 against stage 2");
  ExpectNear(replicated, sharded, "stage 2 against stage 0");
}

TEST(GradientAccumulation, TwoBatchesAreOneOfTwiceTheSize) {
  const TrainingReport whole = TrainSmall(1, {"--batch", "24", "--steps", "10"});
  for (const char* stage : {"0", "1", "2", "3"}) {
    Arguments arguments = Accumulating(stage);
    arguments.insert(arguments.end(), {"--batch", "12"});
    ExpectNear(whole, TrainSmall(1, arguments), std::string("stage ") + stage);
  }
}

TEST(GradientAccumulation, OverlapAndPrefetchChangeNothing) {
  for (const char* stage : {"0", "1", "2", "3"}) {
    ExpectEqual(TrainAccumulating(stage), TrainAccumulating(stage, {"--no-overlap", "--no-prefetch"}),
                std::string("stage ") + stage);
  }
}

TEST(GradientAccumulation, Bf16StagesAgreeInPairs) {
  const Arguments bf16 = {"--dtype", "bf16"};
  ExpectEqual(TrainAccumulating("0", bf16), TrainAccumulating("1", bf16), "stage 1 against stage 0");
  ExpectEqual(TrainAccumulating("2", bf16), TrainAccumulating("3", bf16), "stage 3 against stage 2");
}

TEST(GradientAccumulation, CallsAreThoseOfTheGeneratorAndOfTheFormula) {
  size_t buckets = 0;
  for (const Call& call : Generated(1)) buckets += call.function == "ReduceScatter";
  buckets /= kSteps;
  ASSERT_GT(buckets, 1u);
  const size_t calls_a_step[] = {buckets + 1, buckets + kBlocks + 2, kMicroSteps * buckets + kBlocks + 2,
                                 kMicroSteps * (buckets + 2 * kBlocks + 1) + 1};
  for (int stage = 0; stage < 4; ++stage) {
    Calls calls = Issued(std::to_string(stage));
    // At the end, the digest gathers the master weights of each unit once.
    const size_t of_the_digest = stage == 0 ? 0 : kBlocks + 1;
    ASSERT_EQ(calls.size(), kSteps * calls_a_step[stage] + of_the_digest) << "stage " << stage;
    calls.resize(calls.size() - of_the_digest);
    EXPECT_EQ(calls, Generated(stage)) << "stage " << stage;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
