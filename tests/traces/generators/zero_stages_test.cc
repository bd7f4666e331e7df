// SPDX-License-Identifier: Apache-2.0
#include "tests/support/zero_stages.h"

#include <gtest/gtest.h>

#include <numeric>

namespace dynamiccl {
namespace {

ZeroWorkload Workload(int stage) {
  ZeroWorkload workload;
  workload.stage = stage;
  workload.layers = 3;
  workload.steps = 2;
  workload.bucket_bytes = 1 << 20;
  return workload;
}

// Returns the roles as letters. 'g' and 'p': parameter gather and post-step gather, 'r': gradient reduce,
// 's': scalar.
std::string Roles(const ZeroWorkload& workload) {
  std::string text;
  for (const IssuedCall& issued : GenerateZeroCalls(workload))
    text += "?grpas?"[static_cast<int>(issued.labelled_role)];
  return text;
}

uint64_t ReducedBytes(const std::vector<IssuedCall>& calls) {
  uint64_t sum = 0;
  for (const IssuedCall& issued : calls) {
    if (issued.labelled_role == Role::kGradientReduce) sum += issued.call.bytes;
  }
  return sum;
}

TEST(ZeroStages, OneUnitABucketGivesTheTextbooksOrder) {
  for (int stage = 0; stage < 4; ++stage) {
    ZeroWorkload workload = Workload(stage);
    workload.bucket_bytes = int64_t{1} << 40;
    workload.steps = 1;
    const char* expected[] = {"rs", "rspppp", "rspppp", "gggggggrs"};
    EXPECT_EQ(Roles(workload), expected[stage]) << "stage " << stage;
  }
}

TEST(ZeroStages, EveryGradientIsReducedOnceAStep) {
  for (const int64_t bucket : {1 << 10, 100'000, 1 << 20, 1 << 24}) {
    for (int stage = 0; stage < 4; ++stage) {
      ZeroWorkload workload = Workload(stage);
      workload.bucket_bytes = bucket;
      workload.steps = 1;
      workload.broadcast_first = true;
      uint64_t parameters = 0;
      for (const IssuedCall& issued : GenerateZeroCalls(workload)) {
        if (issued.call.collective == Collective::kBroadcast) parameters += issued.call.bytes;
      }
      EXPECT_EQ(ReducedBytes(GenerateZeroCalls(workload)), parameters);
    }
  }
}

TEST(ZeroStages, FirstAndSecondStageDifferByWhenTheyReduceOnly) {
  EXPECT_EQ(Roles(Workload(1)), Roles(Workload(2)));
  ZeroWorkload first = Workload(1), second = Workload(2);
  first.micro_steps = second.micro_steps = 3;
  EXPECT_EQ(ReducedBytes(GenerateZeroCalls(second)), 3 * ReducedBytes(GenerateZeroCalls(first)));
}

TEST(ZeroStages, CallNumbersRunOnAndLabelsAreComplete) {
  const auto calls = GenerateZeroCalls(Workload(3));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call.call_number, i);
    EXPECT_NE(calls[i].labelled_role, Role::kUnknown);
    EXPECT_NE(calls[i].labelled_phase, Phase::kUnknown);
    EXPECT_EQ(calls[i].labelled_stage, ZeroStage::kStage3);
  }
}

}  // namespace
}  // namespace dynamiccl
