// SPDX-License-Identifier: Apache-2.0
// Compares every set of vector instructions with a plain version of the policy file's network. The tests use
// random weights, weights and states at the ends of their ranges, and the golden vectors.
#include "src/policy/structure_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>

#include "src/policy/policy_checks.h"
#include "src/policy/structure_inference.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

int64_t RoundHalfUp(int64_t value, int bits) {
  return (value + (int64_t{1} << (bits - 1))) >> bits;
}

int64_t Entry(const int16_t* table, int64_t pre_activation, int shift) {
  constexpr int64_t kHalf = kTableEntries / 2;
  return table[std::clamp(RoundHalfUp(pre_activation, shift), -kHalf, kHalf - 1) + kHalf];
}

// Computes docs/formats/policy_file.md in 64 bits, on the tensors in the order of the file.
class PlainNetwork {
 public:
  explicit PlainNetwork(const PolicyTensors& tensors) : t_(tensors) {}

  void Step(const CallToken& token, LstmState& state) const {
    constexpr int kN = kStructureHidden;
    const LstmState before = state;
    const int shift = kTokenFractionBits + t_.structure.gate_fraction_bits - kTableFractionBits;
    for (int unit = 0; unit < kN; ++unit) {
      const int64_t in = Entry(t_.sigmoid_table, GateSum(unit, token, before), shift);
      const int64_t forget = Entry(t_.sigmoid_table, GateSum(kN + unit, token, before), shift);
      const int64_t candidate = Entry(t_.tanh_table, GateSum(2 * kN + unit, token, before), shift);
      const int64_t out = Entry(t_.sigmoid_table, GateSum(3 * kN + unit, token, before), shift);
      const int64_t cell = RoundHalfUp(forget * before.cell[unit] + in * candidate, kGateOneBits);
      state.cell[unit] = static_cast<int32_t>(std::clamp<int64_t>(cell, -32767, 32767));
      const int64_t squashed =
          Entry(t_.tanh_table, state.cell[unit], kTokenFractionBits - kTableFractionBits);
      state.hidden[unit] = static_cast<int16_t>(RoundHalfUp(out * squashed, kGateOneBits));
    }
  }

  StructureLogits Logits(const LstmState& state) const {
    StructureLogits logits;
    for (int row = 0; row < kHeadRows; ++row) {
      int64_t sum = t_.head_bias[row];
      for (int i = 0; i < kStructureHidden; ++i) sum += int64_t{t_.head_weights[row][i]} * state.hidden[i];
      logits[static_cast<size_t>(row)] =
          static_cast<int32_t>(RoundHalfUp(sum, t_.structure.head_fraction_bits));
    }
    return logits;
  }

  int64_t GateSum(int row, const CallToken& token, const LstmState& state) const {
    int64_t sum = t_.gate_bias[row];
    for (int i = 0; i < kTokenFeatures; ++i)
      sum += int64_t{t_.gate_weights[row][i]} * token[static_cast<size_t>(i)];
    for (int i = 0; i < kStructureHidden; ++i)
      sum += int64_t{t_.gate_weights[row][kTokenFeatures + i]} * state.hidden[i];
    return sum;
  }

 private:
  const PolicyTensors& t_;
};

// Returns the row at which PackedStructure keeps a row of the gates.
int PackedGateRow(int row) {
  const int gate = row / kStructureHidden, unit = row % kStructureHidden;
  return unit / kBlockUnits * kBlockRows + gate * kBlockUnits + unit % kBlockUnits;
}

// Returns the class that leads all others by the margin, plus 1. Returns 0 if there is none.
int PlainWinner(const int32_t* logits, int classes, int32_t margin) {
  for (int best = 0; best < classes; ++best) {
    bool leads = true;
    for (int other = 0; other < classes; ++other)
      leads = leads && (other == best || int64_t{logits[best]} - logits[other] >= margin);
    if (leads) return best + 1;
  }
  return 0;
}

NextCall PlainNext(const StructureLogits& logits) {
  const auto fill = [&](int first, int classes, int16_t* less) {
    int64_t largest = logits[static_cast<size_t>(first)];
    for (int i = 0; i < classes; ++i)
      largest = std::max<int64_t>(largest, logits[static_cast<size_t>(first + i)]);
    for (int i = 0; i < classes; ++i) {
      const int64_t difference =
          (largest - logits[static_cast<size_t>(first + i)]) / (kTokenOne >> kUnlikelihoodFractionBits);
      less[i] = static_cast<int16_t>(std::min<int64_t>(difference, 32767));
    }
  };
  NextCall next;
  fill(kNextCollectiveRow, kNextCollectiveClasses, next.collective);
  fill(kNextSizeRow, kNextSizeClasses, next.size);
  return next;
}

void ExpectWinners(const StructureThresholds& thresholds, const StructureLogits& logits,
                   const StructureWinners& winners) {
  for (int c = 0; c < kTunableCollectives; ++c) {
    ASSERT_EQ(winners.lanes[c],
              PlainWinner(logits.data() + c * kRoleClasses, kRoleClasses, thresholds.role_margin));
  }
  ASSERT_EQ(winners.lanes[kPhaseLane],
            PlainWinner(logits.data() + kPhaseRow, kPhaseClasses, thresholds.phase_margin));
  ASSERT_EQ(winners.lanes[kStageLane],
            PlainWinner(logits.data() + kStageRow, kStageClasses, thresholds.stage_margin));
}

CallToken RandomToken(std::mt19937_64& random, bool extreme) {
  CallToken token;
  for (size_t i = 0; i < token.size(); ++i) {
    const int limit = kTokenLimits[i];
    const int any = static_cast<int>(random() % static_cast<uint64_t>(2 * limit + 1)) - limit;
    token[i] = static_cast<int16_t>(!extreme ? any : any < 0 ? -limit : limit);
  }
  return token;
}

// Returns a bias from the room that the weights leave in int32. In half of the cases it takes all the room.
int32_t Bias(int64_t largest_sum, int shift, std::mt19937_64& random) {
  const int64_t room = std::numeric_limits<int32_t>::max() - largest_sum - (int64_t{1} << (shift - 1));
  const int64_t bias = random() % 2 == 0 ? room : static_cast<int64_t>(random() % 4096) % (room + 1);
  return static_cast<int32_t>(random() % 2 == 0 ? bias : -bias);
}

void GiveBiasesAllRoom(PolicyTensors& t, std::mt19937_64& random) {
  for (int row = 0; row < kGateRows; ++row) {
    int64_t largest = 0;
    for (int i = 0; i < kGateColumns; ++i)
      largest +=
          std::abs(int64_t{t.gate_weights[row][i]}) * (i < kTokenFeatures ? kTokenLimits[i] : kTokenOne);
    t.gate_bias[row] =
        Bias(largest, kTokenFractionBits + t.structure.gate_fraction_bits - kTableFractionBits, random);
  }
  for (int row = 0; row < kHeadRows; ++row) {
    int64_t largest = 0;
    for (const int16_t weight : t.head_weights[row]) largest += std::abs(int64_t{weight}) * kTokenOne;
    t.head_bias[row] = Bias(largest, t.structure.head_fraction_bits, random);
  }
}

// Makes a policy with weights at the ends of int16's range, as many as sums can hold. The tables are random
// too.
std::unique_ptr<Policy> MakeExtremePolicy(uint64_t seed) {
  auto policy = test::MakeRandomPolicy(seed);
  PolicyTensors& t = policy->tensors;
  std::mt19937_64 random(seed);
  t.structure.gate_fraction_bits = 1 + static_cast<int>(random() % 15);
  t.structure.head_fraction_bits = 1 + static_cast<int>(random() % 15);
  for (int32_t* margin : {&t.structure.role_margin, &t.structure.phase_margin, &t.structure.stage_margin})
    *margin = 1 + static_cast<int32_t>(random() % (16 * kTokenOne));
  const auto fill = [&random](auto& rows, int64_t limit_of_sum) {
    for (auto& row : rows) {
      std::fill(std::begin(row), std::end(row), int16_t{0});
      for (int64_t room = limit_of_sum / 32768; room > 0; --room)
        row[random() % std::size(row)] = static_cast<int16_t>(random() % 2 == 0 ? -32768 : 32767);
    }
  };
  constexpr int64_t kRoom = (int64_t{1} << 31) - (1 << 25);
  fill(t.gate_weights, kRoom / *std::max_element(std::begin(kTokenLimits), std::end(kTokenLimits)));
  fill(t.head_weights, kRoom / kTokenOne);
  GiveBiasesAllRoom(t, random);
  for (int16_t& entry : t.sigmoid_table) entry = static_cast<int16_t>(random() % 32768);
  for (int16_t& entry : t.tanh_table)
    entry = static_cast<int16_t>(static_cast<int>(random() % (2 * kTokenOne + 1)) - kTokenOne);
  return policy;
}

// Makes a policy with open gates and candidates of one, so that cells run to the ends of their range. For any
// input, the first cell stays at the upper end and the second at the lower end.
std::unique_ptr<Policy> MakeSaturatingPolicy(uint64_t seed) {
  auto policy = test::MakeRandomPolicy(seed);
  PolicyTensors& t = policy->tensors;
  std::fill(std::begin(t.sigmoid_table), std::end(t.sigmoid_table), int16_t{32767});
  std::fill_n(t.tanh_table, kTableEntries / 2, int16_t{-kTokenOne});
  std::fill_n(t.tanh_table + kTableEntries / 2, kTableEntries / 2, int16_t{kTokenOne});
  for (int unit = 0; unit < 2; ++unit) {
    const int candidate = 2 * kStructureHidden + unit;
    std::fill(std::begin(t.gate_weights[candidate]), std::end(t.gate_weights[candidate]), int16_t{0});
    t.gate_bias[candidate] = unit == 0 ? 1 << 20 : -(1 << 20);
  }
  return policy;
}

class StructureNetworkOf : public testing::TestWithParam<VectorSet> {
 protected:
  void SetUp() override {
    if (!Runs(GetParam())) GTEST_SKIP() << "this machine does not run the set";
  }

  void ExpectEqualSteps(const PolicyTensors& tensors, std::mt19937_64& random, bool extreme) {
    const StructureNetwork network(tensors, GetParam());
    const PlainNetwork plain(tensors);
    LstmState state, expected;
    for (int step = 0; step < 200; ++step) {
      const CallToken token = RandomToken(random, extreme);
      network.Step(token, state);
      plain.Step(token, expected);
      for (int unit = 0; unit < kStructureHidden; ++unit) {
        ASSERT_EQ(state.cell[unit], expected.cell[unit]) << "step " << step << " unit " << unit;
        ASSERT_EQ(state.hidden[unit], expected.hidden[unit]) << "step " << step << " unit " << unit;
      }
      const StructureLogits logits = plain.Logits(expected);
      ASSERT_EQ(network.Logits(state), logits) << "step " << step;
      NextCall next;
      ASSERT_NO_FATAL_FAILURE(ExpectWinners(tensors.structure, logits, network.Recognise(state, next)));
      ASSERT_EQ(next, PlainNext(logits)) << "step " << step;
    }
  }
};

TEST_P(StructureNetworkOf, RandomWeightsGiveThePlainNetworksBits) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto policy = test::MakeRandomPolicy(seed);
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSteps(policy->tensors, random, seed % 2 == 0));
  }
}

TEST_P(StructureNetworkOf, WeightsAtTheEndsOfTheirRangeGiveThePlainNetworksBits) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto policy = MakeExtremePolicy(seed);
    ASSERT_TRUE(SumsFit(policy->tensors, Agent::kStructure));
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSteps(policy->tensors, random, seed % 2 == 0));
  }
}

// The logits are as far apart as a sum in int32 allows, at the smallest shift. Some are equal.
TEST_P(StructureNetworkOf, LeadsAtTheEndsOfTheirRangeAreJudgedRight) {
  auto policy = test::MakeRandomPolicy(3);
  PolicyTensors& t = policy->tensors;
  t.structure.head_fraction_bits = 1;
  for (auto& row : t.head_weights) std::fill(std::begin(row), std::end(row), int16_t{0});
  constexpr int32_t kEnd = std::numeric_limits<int32_t>::max() - 1;
  const int32_t ends[] = {-kEnd, -kEnd + 2, -1, 0, 1, 2, kEnd - 2, kEnd};
  std::mt19937_64 random(9);
  for (int round = 0; round < 2000; ++round) {
    for (int32_t& bias : t.head_bias) bias = ends[random() % std::size(ends)];
    for (int32_t* margin : {&t.structure.role_margin, &t.structure.phase_margin, &t.structure.stage_margin})
      *margin = random() % 2 == 0 ? 1 : 16 * kTokenOne;
    ASSERT_TRUE(SumsFit(t, Agent::kStructure));
    const StructureNetwork network(t, GetParam());
    const StructureLogits logits = PlainNetwork(t).Logits({});
    ASSERT_EQ(network.Logits({}), logits);
    NextCall next;
    ASSERT_NO_FATAL_FAILURE(ExpectWinners(t.structure, logits, network.Recognise({}, next)));
    ASSERT_EQ(next, PlainNext(logits));
  }
}

TEST_P(StructureNetworkOf, GoldenVectorsOfAPolicyComeOut) {
  const auto policy = test::MakeRandomPolicy(77);
  const PolicyTensors& t = policy->tensors;
  const StructureNetwork network(t, GetParam());
  LstmState state;
  for (int i = 0; i < kGoldenPerAgent; ++i) {
    if (i % kGoldenSequence == 0) state = LstmState{};
    CallToken token;
    std::copy_n(t.golden_tokens[i], kTokenFeatures, token.begin());
    network.Step(token, state);
    const StructureLogits logits = network.Logits(state);
    ASSERT_TRUE(std::equal(logits.begin(), logits.end(), t.golden_logits[i])) << "vector " << i;
  }
}

TEST_P(StructureNetworkOf, SaturatedCellsGiveThePlainNetworksBits) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto policy = MakeSaturatingPolicy(seed);
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSteps(policy->tensors, random, seed % 2 == 0));
    // This checks that the cells really are saturated.
    const StructureNetwork network(policy->tensors, GetParam());
    LstmState state;
    for (int step = 0; step < 9; ++step) network.Step({}, state);
    EXPECT_EQ(state.cell[0], kCellLimit);
    EXPECT_EQ(state.cell[1], -kCellLimit);
  }
}

TEST(StructureNetwork, RoundedCellsAreNearestMultiplesWithinTheLimit) {
  constexpr int32_t kStep = 1 << StructureNetwork::kCellStepBits;
  LstmState state;
  for (int32_t cell = -kCellLimit; cell <= kCellLimit; ++cell) {
    state.cell[cell & 31] = cell;
    StructureNetwork::RoundCells(state);
    const int32_t rounded = state.cell[cell & 31];
    ASSERT_EQ(rounded % kStep, 0) << cell;
    ASSERT_LE(std::abs(rounded), kCellLimit) << cell;
    const int32_t cut = kCellLimit / kStep * kStep;
    ASSERT_LE(std::abs(rounded - std::clamp(cell, -cut, cut)), kStep / 2) << cell;
  }
}

TEST_P(StructureNetworkOf, GateSumsAreThePlainNetworks) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto policy = MakeExtremePolicy(seed);
    const StructureNetwork network(policy->tensors, GetParam());
    LstmState state;
    for (int step = 0; step < 20; ++step) {
      const CallToken token = RandomToken(random, seed % 2 == 0);
      alignas(64) int32_t sums[kGateRows];
      network.kernels().gates(network.packed(), token.data(), state, sums);
      for (int row = 0; row < kGateRows; ++row) {
        ASSERT_EQ(sums[PackedGateRow(row)], PlainNetwork(policy->tensors).GateSum(row, token, state)) << row;
      }
      network.Step(token, state);
    }
  }
}

// The streams are longer than the plain network can compute in time. They contain zero tokens.
TEST_P(StructureNetworkOf, LongStreamsGiveThePortableBits) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto policy = seed % 3 == 0   ? MakeSaturatingPolicy(seed)
                        : seed % 3 == 1 ? MakeExtremePolicy(seed)
                                        : test::MakeRandomPolicy(seed);
    const StructureNetwork network(policy->tensors, GetParam());
    const StructureNetwork portable(policy->tensors, VectorSet::kPortable);
    std::mt19937_64 random(seed);
    LstmState state, expected;
    NextCall next, expected_next;
    for (int step = 0; step < 5000; ++step) {
      const CallToken token = step % 5 == 0 ? CallToken{} : RandomToken(random, step % 2 == 0);
      network.Step(token, state);
      portable.Step(token, expected);
      ASSERT_EQ(state, expected) << "seed " << seed << " step " << step;
      const StructureWinners winners = network.Recognise(state, next);
      const StructureWinners expected_winners = portable.Recognise(expected, expected_next);
      ASSERT_TRUE(std::equal(std::begin(winners.lanes), std::end(winners.lanes), expected_winners.lanes));
      ASSERT_EQ(next, expected_next) << "seed " << seed << " step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, StructureNetworkOf, testing::ValuesIn(kVectorSets), [](const auto& set) {
  return set.param == VectorSet::kPortable ? "Portable" : "Avx2";
});

}  // namespace
}  // namespace dynamiccl
