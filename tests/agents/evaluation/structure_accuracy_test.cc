// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/structure_accuracy.h"

#include <gtest/gtest.h>

#include "tests/support/sample_policy.h"
#include "tests/support/zero_stages.h"

namespace dynamiccl::agents {
namespace {

std::vector<CallSequence> AllStages() {
  std::vector<CallSequence> sequences;
  for (int stage = 0; stage < 4; ++stage) {
    ZeroWorkload workload;
    workload.stage = stage;
    sequences.push_back({"stage", GenerateZeroCalls(workload)});
  }
  return sequences;
}

TEST(StructureAccuracy, APolicyThatKnowsNothingIsUnknownEverywhere) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kLL);
  const StructureAccuracy accuracy = JudgePolicy(*policy, AllStages());
  // The size of a tiny AllReduce tells its role without any policy.
  const auto scalar = static_cast<size_t>(Role::kScalar);
  EXPECT_EQ(accuracy.role.right, accuracy.role_confusion[scalar][scalar]);
  EXPECT_EQ(accuracy.role.wrong, 0u);
  EXPECT_EQ(accuracy.stage.unknown, accuracy.stage.calls());
  EXPECT_EQ(accuracy.sequences.size(), 4u);
}

TEST(StructureAccuracy, RulesKnowAllButTheSecondStageFromTheFirst) {
  const StructureAccuracy accuracy = JudgeRules(AllStages());
  const ZeroStage expected[] = {ZeroStage::kStage0, ZeroStage::kStage2, ZeroStage::kStage2,
                                ZeroStage::kStage3};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(accuracy.sequences[i].recognised_stage, expected[i]);
  EXPECT_GT(accuracy.role.share_right(), 0.9);
}

TEST(StructureAccuracy, CallsOfOneGroupAreJudgedByWhatWasKnownBeforeIt) {
  std::vector<CallSequence> sequences = AllStages();
  // The whole run is one group, so nothing is known before it.
  for (CallSequence& sequence : sequences) {
    for (IssuedCall& issued : sequence.calls) issued.call.call_number = 0;
  }
  const StructureAccuracy accuracy = JudgeRules(sequences);
  // The size of a tiny AllReduce tells its role without any history.
  const auto scalar = static_cast<size_t>(Role::kScalar);
  EXPECT_EQ(accuracy.role.right, accuracy.role_confusion[scalar][scalar]);
  EXPECT_EQ(accuracy.role.unknown, accuracy.role.calls() - accuracy.role.right);
}

}  // namespace
}  // namespace dynamiccl::agents
