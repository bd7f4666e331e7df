// SPDX-License-Identifier: Apache-2.0
#include "src/policy/structure_inference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

CollectiveCall RandomCall(std::mt19937_64& random) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(random() % kTunableCollectives);
  call.bytes = random() >> (random() % 60);
  call.group_size = static_cast<uint16_t>(1 + random() % 4);
  call.n_ranks = 2;
  return call;
}

// Computes the same network in double precision with exact activation functions.
class DoubleLstm {
 public:
  explicit DoubleLstm(const PolicyTensors& t) : t_(t) {}

  void Step(const CallToken& token) {
    std::vector<double> x(kGateColumns);
    for (int i = 0; i < kTokenFeatures; ++i) x[i] = token[i] / double{kTokenOne};
    for (int i = 0; i < kStructureHidden; ++i) x[kTokenFeatures + i] = hidden[i];
    const auto sum = [&](int row) {
      double value = t_.gate_bias[row] / std::exp2(kTokenFractionBits + t_.structure.gate_fraction_bits);
      for (int i = 0; i < kGateColumns; ++i) {
        value += x[i] * t_.gate_weights[row][i] / std::exp2(t_.structure.gate_fraction_bits);
      }
      return value;
    };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (int u = 0; u < kStructureHidden; ++u) {
      cell[u] = sigmoid(sum(kStructureHidden + u)) * cell[u] +
                sigmoid(sum(u)) * std::tanh(sum(2 * kStructureHidden + u));
      next[u] = sigmoid(sum(3 * kStructureHidden + u)) * std::tanh(cell[u]);
    }
    hidden = next;
  }

  std::vector<double> hidden = std::vector<double>(kStructureHidden), cell = hidden, next = hidden;

 private:
  const PolicyTensors& t_;
};

TEST(StructureInference, FollowsTheRealNetworkWithinTheTablesStep) {
  const auto policy = test::MakeRandomPolicy(21);
  std::mt19937_64 random(4);
  const StructureNetwork network(policy->tensors);
  CallTokenizer tokenizer;
  LstmState state;
  DoubleLstm reference(policy->tensors);
  for (int step = 0; step < 64; ++step) {
    const CallToken token = tokenizer.Next(RandomCall(random));
    // The reference continues from the integer state. The test compares single steps, because small errors
    // grow over many steps.
    for (int u = 0; u < kStructureHidden; ++u) {
      reference.hidden[u] = state.hidden[u] / double{kTokenOne};
      reference.cell[u] = state.cell[u] / double{kTokenOne};
    }
    network.Step(token, state);
    reference.Step(token);
    for (int u = 0; u < kStructureHidden; ++u) {
      ASSERT_NEAR(state.hidden[u] / double{kTokenOne}, reference.hidden[u], 0.02) << "step " << step;
    }
  }
}

TEST(StructureInference, EqualCallsGiveEqualAnswersWhateverTheCommunicator) {
  const auto policy = test::MakeRandomPolicy(22);
  StructureAgent a(*policy), b(*policy);
  std::mt19937_64 random(5);
  for (int step = 0; step < 2000; ++step) {
    CollectiveCall call = RandomCall(random);
    const RecognisedStructure first = a.Step(call);
    call.communicator = 99;
    call.call_number = 12345;
    ASSERT_EQ(b.Step(call), first);
  }
}

TEST(StructureInference, NothingIsRecognisedBeforeTheFirstCallOrWithoutAMargin) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  StructureAgent agent(*policy);
  EXPECT_EQ(agent.recognised(), RecognisedStructure{});
  std::mt19937_64 random(6);
  for (int step = 0; step < 20; ++step) EXPECT_EQ(agent.Step(RandomCall(random)), RecognisedStructure{});
}

TEST(StructureInference, AStageMustWinForTheHoldingTime) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  policy->tensors.structure.stage_hold_calls = 5;
  policy->tensors.head_bias[kStageRow + 3] = 8 * kTokenOne << policy->tensors.structure.head_fraction_bits;
  StructureAgent agent(*policy);
  for (int call = 1; call <= 4; ++call) EXPECT_EQ(agent.Step({}).stage, ZeroStage::kUnknown) << call;
  for (int call = 5; call <= 9; ++call) EXPECT_EQ(agent.Step({}).stage, ZeroStage::kStage3) << call;
}

// Steps have calls of three sizes, and later the buckets have another size.
TEST(StructureInference, ANewShapeInASettledJobIsAChangeOnce) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  policy->tensors.structure.settled_calls = 100;
  StructureAgent agent(*policy);
  const auto call_of = [](int i, uint64_t unit) {
    CollectiveCall call;
    call.bytes = unit * static_cast<uint64_t>(1 + i % 3);
    return call;
  };
  for (int i = 0; i < 400; ++i) EXPECT_FALSE(agent.Step(call_of(i, 1 << 20)).changed) << i;
  EXPECT_TRUE(agent.Step(call_of(0, 5 << 20)).changed);
  for (int i = 1; i < 400; ++i) EXPECT_FALSE(agent.Step(call_of(i, 5 << 20)).changed) << i;
  EXPECT_TRUE(agent.Step(call_of(0, 1 << 20)).changed) << "back to what was forgotten";
}

TEST(StructureInference, ASurpriseIsAChangeFromTheThresholdOn) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  PolicyTensors& t = policy->tensors;
  // The network expects AllReduce by a lead of 3 in the logits.
  t.head_bias[kNextCollectiveRow + static_cast<int>(Collective::kAllReduce)] =
      3 * kTokenOne << t.structure.head_fraction_bits;
  t.structure.surprise = 3 << kUnlikelihoodFractionBits;
  CollectiveCall gather;
  gather.collective = Collective::kAllGather;
  StructureAgent agent(*policy);
  EXPECT_FALSE(agent.Step(gather).changed) << "nothing is expected before the first call";
  EXPECT_FALSE(agent.Step({}).changed);
  EXPECT_EQ(agent.recognised().surprise, 0);
  EXPECT_TRUE(agent.Step(gather).changed);
  EXPECT_EQ(agent.recognised().surprise, 3 << kUnlikelihoodFractionBits);
  t.structure.surprise += 1;
  agent.Restart(*policy);
  agent.Step({});
  EXPECT_FALSE(agent.Step(gather).changed);
}

TEST(StructureInference, WhatATinyAllReduceIsItsSizeTells) {
  RecognisedStructure recognised;
  recognised.next_role[static_cast<size_t>(Collective::kAllReduce)] = Role::kGradientReduce;
  recognised.next_role[static_cast<size_t>(Collective::kAllGather)] = Role::kParameterGather;
  EXPECT_EQ(RoleOfNext(recognised, Collective::kAllReduce, kTinyBytes), Role::kScalar);
  EXPECT_EQ(RoleOfNext(recognised, Collective::kAllReduce, kTinyBytes + 1), Role::kGradientReduce);
  EXPECT_EQ(RoleOfNext(recognised, Collective::kAllGather, 8), Role::kParameterGather);
  recognised.phase = Phase::kForward;
  EXPECT_EQ(KeyRoleOfNext(recognised, Collective::kAllGather, 8), Role::kParameterGather);
  recognised.phase = Phase::kBackward;
  EXPECT_EQ(KeyRoleOfNext(recognised, Collective::kAllGather, 8), Role::kBackwardGather);
  EXPECT_EQ(KeyRoleOfNext(recognised, Collective::kAllReduce, 4096), Role::kGradientReduce);
}

TEST(StructureInference, ExtremeTokensStayInRange) {
  const auto policy = test::MakeRandomPolicy(23);
  const StructureNetwork network(policy->tensors);
  LstmState state;
  for (int step = 0; step < 1000; ++step) {
    CallToken token;
    for (int i = 0; i < kTokenFeatures; ++i) {
      token[i] = static_cast<int16_t>(((step >> (i % 7)) & 1) != 0 ? kTokenLimits[i] : -kTokenLimits[i]);
    }
    network.Step(token, state);
    for (const int16_t h : state.hidden) ASSERT_LE(std::abs(h), kTokenOne);
  }
}

}  // namespace
}  // namespace dynamiccl
