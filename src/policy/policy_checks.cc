// SPDX-License-Identifier: Apache-2.0
// Checks a policy's values. A row of weights cannot overflow if the sum of |weight| * limit of the input
// fits, so this sum is computed for each row.
#include "src/policy/policy_checks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/policy/config_inference.h"
#include "src/policy/effect_inference.h"
#include "src/policy/policy_layout.h"
#include "src/policy/small_network.h"
#include "src/policy/structure_network.h"

namespace dynamiccl {
namespace {

// For each section, k_<member> is its number, for PolicyFault::kind.
#define DYNAMICCL_SECTION_KIND(kind, member) constexpr uint32_t k_##member = kind;
DYNAMICCL_POLICY_SECTIONS(DYNAMICCL_SECTION_KIND)
DYNAMICCL_EFFECT_SECTIONS(DYNAMICCL_SECTION_KIND)
#undef DYNAMICCL_SECTION_KIND

constexpr int64_t kInt32Limit = (int64_t{1} << 31) - 1;

// One row of a matrix. The sum of |w| * |x|, plus |bias|, plus half of the rounding step, must stay below
// 2^31.
struct Row {
  const int16_t* weights;
  int columns;
  int64_t bias;
  int shift;
};

template <typename Limit>
bool Overflows(const Row& row, Limit limit_of) {
  int64_t sum = std::abs(row.bias) + (int64_t{1} << (row.shift - 1));
  for (int i = 0; i < row.columns; ++i) sum += std::abs(int64_t{row.weights[i]}) * limit_of(i);
  return sum > kInt32Limit;
}

bool Within(int32_t value, int32_t low, int32_t high) {
  return value >= low && value <= high;
}

PolicyFault FindGateOverflow(const PolicyTensors& t) {
  const auto limit = [](int i) -> int64_t { return i < kTokenFeatures ? kTokenLimits[i] : kTokenOne; };
  const int shift = kTokenFractionBits + t.structure.gate_fraction_bits - kTableFractionBits;
  for (int r = 0; r < kGateRows; ++r) {
    if (Overflows(Row{t.gate_weights[r], kGateColumns, t.gate_bias[r], shift}, limit)) {
      return {k_gate_weights, static_cast<size_t>(r) * kGateColumns, "a sum of products can exceed int32"};
    }
  }
  for (int r = 0; r < kHeadRows; ++r) {
    const Row row{t.head_weights[r], kStructureHidden, t.head_bias[r], t.structure.head_fraction_bits};
    if (Overflows(row, [](int) -> int64_t { return kTokenOne; })) {
      return {k_head_weights, static_cast<size_t>(r) * kStructureHidden,
              "a sum of products can exceed int32"};
    }
  }
  return {};
}

int64_t ConfigInputLimit(int i) {
  return i < kConfigFeatures ? kConfigLimits[i] : 0;
}
int64_t EffectInputLimit(int i) {
  return i < kEffectFeatures ? kEffectLimits[i] : 0;
}

// A place in the weights of a small network at which a sum can exceed int32. `layer` is -1 if there is none.
struct OverflowPlace {
  int layer = -1;
  int network = 0;
  int row = 0;
};

template <int Inputs, int Hidden, typename Limit>
OverflowPlace FindOverflowIn(const SmallNetwork<Inputs, Hidden>& network, int number, Limit input_limit) {
  const auto hidden_limit = [](int) -> int64_t { return kActivationLimit; };
  for (int r = 0; r < Hidden; ++r) {
    const Row first{network.weights_1[r], Inputs, network.bias_1[r], network.shift(0)};
    if (Overflows(first, input_limit)) return {0, number, r};
    const Row second{network.weights_2[r], Hidden, network.bias_2[r], network.shift(1)};
    if (Overflows(second, hidden_limit)) return {1, number, r};
  }
  const Row last{network.weights_3, Hidden, network.bias_3, network.shift(2)};
  return Overflows(last, hidden_limit) ? OverflowPlace{2, number, 0} : OverflowPlace{};
}

OverflowPlace FindConfigOverflowPlace(const PolicyTensors& t) {
  for (int n = 0; n < kEnsemble; ++n) {
    const OverflowPlace place = FindOverflowIn(ConfigNetworkOf(t, n), n, ConfigInputLimit);
    if (place.layer >= 0) return place;
  }
  return {};
}

OverflowPlace FindEffectOverflowPlace(const PolicyTensors& t) {
  for (int n = 0; t.effect.count != 0 && n < kEnsemble; ++n) {
    const OverflowPlace place = FindOverflowIn(EffectNetworkOf(t, n), n, EffectInputLimit);
    if (place.layer >= 0) return place;
  }
  return {};
}

// The fault at `place` in networks with `inputs` inputs and `hidden` units, whose weights are the sections
// `kinds`.
PolicyFault FaultAt(const OverflowPlace& place, int inputs, int hidden, const uint32_t (&kinds)[3]) {
  if (place.layer < 0) return {};
  const int columns = place.layer == 0 ? inputs : hidden;
  const int row = place.layer == 2 ? place.network : place.network * hidden + place.row;
  return {kinds[place.layer], static_cast<size_t>(row) * static_cast<size_t>(columns),
          "a sum of products can exceed int32"};
}

PolicyFault FindConfigOverflow(const PolicyTensors& t) {
  return FaultAt(FindConfigOverflowPlace(t), kConfigInputs, kConfigHidden,
                 {k_config_weights_1, k_config_weights_2, k_config_weights_3});
}

PolicyFault FindEffectOverflow(const PolicyTensors& t) {
  return FaultAt(FindEffectOverflowPlace(t), kEffectInputs, kEffectHidden,
                 {k_effect_weights_1, k_effect_weights_2, k_effect_weights_3});
}

bool AreLayerBits(const int32_t (&bits)[3]) {
  for (int layer = 0; layer < 3; ++layer)
    if (!Within(bits[layer], kLeastLayerBits[layer], 15)) return false;
  return true;
}

}  // namespace

PolicyFault FindThresholdFault(const PolicyTensors& t) {
  const StructureThresholds& s = t.structure;
  // 1 to 15 fraction bits keep every shift defined. Margins are at most 16, in units of logits, and holds at
  // most 2^16 calls. A surprise of 2^16 never occurs, so this value switches the check for surprise off.
  const bool structure =
      Within(s.gate_fraction_bits, 1, 15) && Within(s.head_fraction_bits, 1, 15) &&
      Within(s.role_margin, 1, 16 * kTokenOne) && Within(s.phase_margin, 1, 16 * kTokenOne) &&
      Within(s.stage_margin, 1, 16 * kTokenOne) && Within(s.stage_hold_calls, 1, 1 << 16) &&
      Within(s.surprise, 1, 1 << 16) && Within(s.settled_calls, 1, 1 << 16);
  if (!structure) return {k_structure, 0, "a threshold or scale is out of range"};
  const ConfigScales& c = t.config;
  if (!Within(c.gate, 1, 16 << 16) || !AreLayerBits(c.fraction_bits))
    return {k_config, 0, "a scale or the gate is out of range"};
  for (int i = 0; i < kConfigInputs; ++i) {
    if (t.domain_min[i] > t.domain_max[i])
      return {k_domain_min, static_cast<size_t>(i), "minimum above maximum"};
  }
  return {};
}

PolicyFault FindTableFault(const PolicyTensors& t) {
  for (size_t i = 0; i < kTableEntries; ++i) {
    if (t.sigmoid_table[i] < 0) return {k_sigmoid_table, i, "a sigmoid is negative"};
    if (std::abs(t.tanh_table[i]) > kTokenOne) return {k_tanh_table, i, "a tanh is beyond 1"};
  }
  for (size_t i = 0; i < size_t{kGoldenPerAgent} * kTokenFeatures; ++i) {
    if (std::abs(int{(&t.golden_tokens[0][0])[i]}) > kTokenLimits[i % kTokenFeatures]) {
      return {k_golden_tokens, i, "a token is beyond its limit"};
    }
  }
  for (size_t i = 0; i < size_t{kGoldenPerAgent} * kConfigInputs; ++i) {
    if (std::abs(int64_t{(&t.golden_features[0][0])[i]}) >
        ConfigInputLimit(static_cast<int>(i % kConfigInputs))) {
      return {k_golden_features, i, "a feature is beyond its limit"};
    }
  }
  return {};
}

// If leaves and base are within these limits, no sum of the trees exceeds 2^26.
PolicyFault FindTreeFault(const PolicyTensors& t) {
  if (!Within(t.trees.count, 0, kTrees) || !Within(t.trees.base, -kTreeBaseLimit, kTreeBaseLimit))
    return {k_trees, 0, "the number of trees or their base is out of range"};
  constexpr size_t kSplits = size_t{kTrees} * kTreeNodes;
  for (size_t i = 0; i < kSplits; ++i) {
    if (!Within((&t.tree_nodes[0][0][0])[2 * i], 0, kConfigFeatures - 1))
      return {k_tree_nodes, 2 * i, "a tree asks for a feature that does not exist"};
  }
  for (size_t i = 0; i < size_t{kTrees} * kTreeLeaves; ++i) {
    if (!Within((&t.tree_leaves[0][0])[i], -kTreeLeafLimit, kTreeLeafLimit))
      return {k_tree_leaves, i, "a leaf is out of range"};
  }
  return {};
}

PolicyFault FindEffectFault(const PolicyTensors& t) {
  const EffectScales& e = t.effect;
  if (e.count == 0) return {};
  if (e.count < 0 || !Within(e.error, 0, 16 << 16) || !AreLayerBits(e.fraction_bits))
    return {k_effect, 0, "a scale, the error or the number of effects is out of range"};
  for (int i = 0; i < kEffectInputs; ++i) {
    if (t.effect_domain_min[i] > t.effect_domain_max[i])
      return {k_effect_domain_min, static_cast<size_t>(i), "minimum above maximum"};
  }
  for (size_t i = 0; i < size_t{kGoldenPerAgent} * kEffectInputs; ++i) {
    if (std::abs(int64_t{(&t.golden_effect_features[0][0])[i]}) >
        EffectInputLimit(static_cast<int>(i % kEffectInputs)))
      return {k_golden_effect_features, i, "an input is beyond its limit"};
  }
  return {};
}

PolicyFault FindOverflow(const PolicyTensors& t) {
  for (const auto find : {FindGateOverflow, FindConfigOverflow, FindEffectOverflow}) {
    if (PolicyFault fault = find(t); fault.kind != 0) return fault;
  }
  return {};
}

int OverflowingConfigLayer(const PolicyTensors& t) {
  return FindConfigOverflowPlace(t).layer;
}

int OverflowingEffectLayer(const PolicyTensors& t) {
  return FindEffectOverflowPlace(t).layer;
}

bool SumsFit(const PolicyTensors& t, Agent agent) {
  return (agent == Agent::kStructure ? FindGateOverflow(t) : FindConfigOverflow(t)).kind == 0;
}

void ComputeGoldenOutputs(PolicyTensors& t) {
  const StructureNetwork network(t);
  LstmState state;
  for (size_t i = 0; i < kGoldenPerAgent; ++i) {
    if (i % kGoldenSequence == 0) state = LstmState{};
    CallToken token;
    std::copy_n(t.golden_tokens[i], kTokenFeatures, token.begin());
    network.Step(token, state);
    const StructureLogits logits = network.Logits(state);
    std::copy(logits.begin(), logits.end(), t.golden_logits[i]);

    ConfigInputs inputs;
    std::copy_n(t.golden_features[i], kConfigInputs, inputs.begin());
    const Residuals residuals = PredictResiduals(t, inputs);
    std::copy(residuals.begin(), residuals.end(), t.golden_residuals[i]);
    t.golden_tree_residuals[i] = PredictTreeResidual(t, inputs);
  }
  for (size_t i = 0; t.effect.count != 0 && i < kGoldenPerAgent; ++i) {
    EffectInputs inputs;
    std::copy_n(t.golden_effect_features[i], kEffectInputs, inputs.begin());
    const EffectOutputs outputs = PredictEffects(t, inputs);
    std::copy(outputs.begin(), outputs.end(), t.golden_effects[i]);
  }
}

PolicyFault FindGoldenMismatch(const PolicyTensors& t) {
  const auto computed = std::make_unique<PolicyTensors>(t);
  ComputeGoldenOutputs(*computed);
  for (size_t i = 0; i < kGoldenPerAgent; ++i) {
    if (std::memcmp(computed->golden_logits[i], t.golden_logits[i], sizeof(t.golden_logits[i])) != 0) {
      return {k_golden_logits, i * kHeadRows, "this machine computes other logits for a golden vector"};
    }
    if (std::memcmp(computed->golden_residuals[i], t.golden_residuals[i], sizeof(t.golden_residuals[i])) !=
        0) {
      return {k_golden_residuals, i * kEnsemble, "this machine computes other residuals for a golden vector"};
    }
    if (computed->golden_tree_residuals[i] != t.golden_tree_residuals[i]) {
      return {k_golden_tree_residuals, i,
              "this machine's trees compute another residual for a golden vector"};
    }
    if (std::memcmp(computed->golden_effects[i], t.golden_effects[i], sizeof(t.golden_effects[i])) != 0)
      return {k_golden_effects, i * kEnsemble, "this machine computes other effects for a golden vector"};
  }
  return {};
}

PolicyFault FindFault(const PolicyTensors& tensors) {
  for (const auto find : {FindThresholdFault, FindTableFault, FindTreeFault, FindEffectFault, FindOverflow,
                          FindGoldenMismatch}) {
    if (PolicyFault fault = find(tensors); fault.kind != 0) return fault;
  }
  return {};
}

}  // namespace dynamiccl
