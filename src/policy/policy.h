// SPDX-License-Identifier: Apache-2.0
// A trained policy in memory: the integer weights of both agents, their tables and thresholds, the range of
// inputs for which they may be used, and vectors that prove that this machine computes what the exporter
// computed. docs/formats/policy_file.md has the grammar of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/sha256.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/config_features.h"
#include "src/policy/effect_features.h"
#include "src/policy/structure_layout.h"

namespace dynamiccl {

class StructureNetwork;

// Number of networks of the config agent. An action is chosen only if all of them and the trees promise a
// gain.
inline constexpr int kEnsemble = 3;
inline constexpr int kConfigHidden = 48;  // units of each of the two hidden layers
// Activations of the hidden layers have 13 fraction bits and are at most 2. A wider range would leave fewer
// fraction bits, and configurations whose times differ by 0.1 % would be ordered wrongly.
inline constexpr int kActivationFractionBits = 13;
inline constexpr int32_t kActivationLimit = 2 << kActivationFractionBits;
inline constexpr int kEffectHidden = 32;  // units of each hidden layer of the networks for effects on steps
inline constexpr int kGoldenPerAgent = 128;  // golden vectors of each agent

// The scales and thresholds of the structure agent. Logits have kTokenFractionBits fraction bits. The struct
// is one section of the file: order and type of the members are the format.
struct StructureThresholds {
  int32_t gate_fraction_bits = 0;  // fraction bits of gate_weights
  int32_t head_fraction_bits = 0;  // fraction bits of head_weights
  int32_t role_margin = 0;         // best logit minus second best, below which the answer is "unknown"
  int32_t phase_margin = 0;
  int32_t stage_margin = 0;
  int32_t stage_hold_calls = 0;  // calls in a row for which a new stage must win before it is reported
  // A call with at least this unlikelihood (NextCall) counts as a change of the job's calls.
  int32_t surprise = 0;
  // If no new shape (SeenShapes) came for this many calls, a call of a new shape counts as a change too.
  int32_t settled_calls = 0;
};

// Boosted trees, which the config agent uses beside the networks. Every tree is complete and kTreeDepth
// levels deep. The children of node i are 2i + 1 and 2i + 2; an input below the node's threshold goes to the
// first. If a branch ended earlier in the trained tree, all leaves below that end have the value of the
// branch.
inline constexpr int kTrees = 128;
inline constexpr int kTreeDepth = 5;
inline constexpr int kTreeNodes = (1 << kTreeDepth) - 1;
inline constexpr int kTreeLeaves = 1 << kTreeDepth;
// Limits in octaves with 16 fraction bits: 4 for a leaf, 64 for the base. So 128 leaves and the base stay
// below 2^26.
inline constexpr int32_t kTreeLeafLimit = 1 << 18;
inline constexpr int32_t kTreeBaseLimit = 1 << 22;

// The scalars of the trees. The struct is one section of the file.
struct TreeScales {
  int32_t count = 0;  // trees in use, from the first; 0: the networks decide alone
  int32_t base = 0;   // added to the sum of the trees, 16 fraction bits
};

// The scalars of the config networks. The struct is one section of the file.
struct ConfigScales {
  int32_t fraction_bits[3] = {};  // fraction bits of the weights, by layer
  int32_t gate = 0;               // log2 of the gain that every network must promise, 16 fraction bits
};

// The scalars of the networks that predict effects on steps. The struct is one section of the file.
struct EffectScales {
  int32_t fraction_bits[3] = {};  // fraction bits of the weights, by layer
  // Standard error of predictions on fabrics that training left out, as log2 with 16 fraction bits.
  int32_t error = 0;
  int32_t count = 0;  // measured effects in training; 0: the policy predicts no effects
};

// The arrays of a policy. There are so many members because each is one section of the file, in this order
// (policy_layout.h). Policy owns them. Nothing writes to them after reading, so any thread may read. The
// alignment of 64 bytes is for vector loads.
struct PolicyTensors {
  // Rows: input, forget, cell and output gate, each with kStructureHidden rows (LibTorch's order). Columns:
  // token, hidden state.
  alignas(64) int16_t gate_weights[kGateRows][kGateColumns];
  int32_t gate_bias[kGateRows];  // kTokenFractionBits + gate_fraction_bits fraction bits
  alignas(64) int16_t head_weights[kHeadRows][kStructureHidden];
  int32_t head_bias[kHeadRows];
  alignas(64) int16_t sigmoid_table[kTableEntries];  // 15 fraction bits
  alignas(64) int16_t tanh_table[kTableEntries];     // 12 fraction bits
  StructureThresholds structure;

  alignas(64) int16_t config_weights_1[kEnsemble][kConfigHidden][kConfigInputs];
  int32_t config_bias_1[kEnsemble][kConfigHidden];
  alignas(64) int16_t config_weights_2[kEnsemble][kConfigHidden][kConfigHidden];
  int32_t config_bias_2[kEnsemble][kConfigHidden];
  alignas(64) int16_t config_weights_3[kEnsemble][kConfigHidden];
  int32_t config_bias_3[kEnsemble];
  ConfigScales config;
  // Smallest and largest value of each feature in training.
  int16_t domain_min[kConfigInputs];
  int16_t domain_max[kConfigInputs];

  TreeScales trees;
  // A node holds the index of a feature in ConfigInputs, and the threshold in that feature's fixed point.
  int16_t tree_nodes[kTrees][kTreeNodes][2];
  int32_t tree_leaves[kTrees][kTreeLeaves];  // log2, 16 fraction bits

  // Golden vectors, which prove that a machine computes the same as the exporter. They are eight sequences of
  // 16 tokens, each begun with an empty state, with the logits after each token; then inputs of the config
  // agent with the residuals of the networks and the trees.
  alignas(64) int16_t golden_tokens[kGoldenPerAgent][kTokenFeatures];
  int32_t golden_logits[kGoldenPerAgent][kHeadRows];
  alignas(64) int16_t golden_features[kGoldenPerAgent][kConfigInputs];
  int32_t golden_residuals[kGoldenPerAgent][kEnsemble];
  int32_t golden_tree_residuals[kGoldenPerAgent];

  // What configs do to steps: networks like those above (effect_features.h has the inputs), the smallest and
  // largest value of each input in training, and golden vectors. All are zero, and not in the file, if
  // effect.count is 0.
  alignas(64) int16_t effect_weights_1[kEnsemble][kEffectHidden][kEffectInputs];
  int32_t effect_bias_1[kEnsemble][kEffectHidden];
  alignas(64) int16_t effect_weights_2[kEnsemble][kEffectHidden][kEffectHidden];
  int32_t effect_bias_2[kEnsemble][kEffectHidden];
  alignas(64) int16_t effect_weights_3[kEnsemble][kEffectHidden];
  int32_t effect_bias_3[kEnsemble];
  EffectScales effect;
  int16_t effect_domain_min[kEffectInputs];
  int16_t effect_domain_max[kEffectInputs];
  alignas(64) int16_t golden_effect_features[kGoldenPerAgent][kEffectInputs];
  int32_t golden_effects[kGoldenPerAgent][kEnsemble];
};
// One golden sequence has this many tokens.
inline constexpr int kGoldenSequence = 16;

// A policy and its origin. ReadPolicyFile returns it behind a pointer to const; communicators share it.
struct Policy {
  PolicyTensors tensors{};
  std::string provenance;         // text: how the policy was made (docs/formats/policy_file.md)
  uint64_t training_data_id = 0;  // XXH3 over the hashes of the training files
  uint32_t min_nccl_version = 0;  // releases whose cost model served as prior, as NCCL_VERSION_CODE
  uint32_t max_nccl_version = 0;
  Sha256Digest sha256{};  // digest of the file, set by reading and writing; ranks compare it
  // Set when a file is read, after which the tensors do not change; null in a policy that is under
  // construction.
  std::shared_ptr<const StructureNetwork> structure_network;
};

}  // namespace dynamiccl
