// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/structure_dataset.h"

#include <gtest/gtest.h>

#include "src/fingerprint/call_token.h"

namespace dynamiccl::agents {
namespace {

IssuedCall Call(uint64_t number, Collective collective, Role role) {
  IssuedCall issued;
  issued.call.call_number = number;
  issued.call.collective = collective;
  issued.call.bytes = 4096;
  issued.labelled_role = role;
  issued.labelled_phase = Phase::kBackward;
  issued.labelled_stage = ZeroStage::kStage2;
  return issued;
}

// Two groups of two calls.
CallSequence Groups() {
  return {
      "x",
      {Call(0, Collective::kReduceScatter, Role::kGradientReduce),
       Call(0, Collective::kAllReduce, Role::kScalar), Call(1, Collective::kAllGather, Role::kPostStepGather),
       Call(1, Collective::kAllReduce, Role::kScalar)}};
}

TEST(StructureDataset, TargetsAreTheNextGroupsCallsAfterTheLastCallOfAGroup) {
  const StructureBatch batch = MakeBatch({Groups()}, {0}, 6);
  const auto role = [&](int64_t call, Collective collective) {
    return batch.roles[0][call][static_cast<int64_t>(collective)].item<int64_t>();
  };
  EXPECT_EQ(role(0, Collective::kAllReduce), -1) << "in the middle of a group nothing is read";
  EXPECT_EQ(role(1, Collective::kAllGather), static_cast<int64_t>(Role::kPostStepGather) - 1);
  EXPECT_EQ(role(1, Collective::kAllReduce), static_cast<int64_t>(Role::kScalar) - 1);
  EXPECT_EQ(role(1, Collective::kReduceScatter), -1) << "no ReduceScatter comes next";
  EXPECT_EQ(batch.stages[0][1].item<int64_t>(), 2);
  EXPECT_EQ(batch.stages[0][3].item<int64_t>(), -1) << "nothing comes after the last call";
  EXPECT_EQ(batch.stages[0][5].item<int64_t>(), -1) << "padding";
}

TEST(StructureDataset, TokensAreThoseOfThePolicy) {
  const CallSequence sequence = Groups();
  const StructureBatch batch = MakeBatch({sequence}, {1}, 3);
  CallTokenizer tokenizer;
  for (int64_t call = 0; call < 3; ++call) {
    const CallToken token = tokenizer.Next(sequence.calls[static_cast<size_t>(call) + 1].call);
    for (int64_t f = 0; f < kTokenFeatures; ++f) {
      EXPECT_EQ(batch.tokens[0][call][f].item<float>() * kTokenOne, token[static_cast<size_t>(f)]);
    }
  }
}

}  // namespace
}  // namespace dynamiccl::agents
