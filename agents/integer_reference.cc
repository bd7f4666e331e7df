// SPDX-License-Identifier: Apache-2.0
// Fixed-point arithmetic as docs/formats/policy_file.md defines it: a value v with b fraction bits stands for
// v / 2^b, and after each product the sum is scaled back with rounding. The LSTM's equations are those of
// structure/bounded_lstm.h, with sigmoid and tanh from tables. The config networks have two hidden layers,
// whose activation is cut at both ends.
#include "agents/integer_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace dynamiccl::agents {
namespace {

template <typename Array>
// Converts a C array of integers to an int64 tensor of the given sizes.
at::Tensor Long(const Array& array, at::IntArrayRef sizes) {
  using Element = std::remove_all_extents_t<Array>;
  auto* data = const_cast<Element*>(reinterpret_cast<const Element*>(&array));  // from_blob takes no const
  return at::from_blob(data, sizes, at::CppTypeToScalarType<Element>::value).to(at::kLong);
}

// Divides by 2^bits and rounds to the nearest integer. Halves are rounded up.
at::Tensor Scale(const at::Tensor& values, int64_t bits) {
  return at::div(values + (int64_t{1} << (bits - 1)), int64_t{1} << bits, "floor");
}

// Looks sums up in a table of 2048 entries, of which entry 1024 stands for 0. Sums outside the table take its
// first or last entry.
at::Tensor LookUp(const at::Tensor& table, const at::Tensor& values, int64_t bits) {
  return table.index_select(0, (Scale(values, bits) + 1024).clamp(0, 2047));
}

void CopyOut(const at::Tensor& source, int32_t* target) {
  const at::Tensor values = source.to(at::kInt).contiguous();
  std::copy_n(values.const_data_ptr<int32_t>(), values.numel(), target);
}

// The weights and biases of three networks with two hidden layers, layer by layer.
struct SmallNetworks {
  at::Tensor w1, b1, w2, b2, w3, b3;
};

// The outputs of the networks for each row of `features`: int64 [row, 3], with 16 fraction bits.
at::Tensor Networks(const SmallNetworks& n, const int32_t* bits, const at::Tensor& features) {
  std::vector<at::Tensor> outputs;
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor first =
        Scale(at::matmul(features, n.w1[i].t()) + n.b1[i], 12 + bits[0] - 13).clamp(0, 16384);
    const at::Tensor second = Scale(at::matmul(first, n.w2[i].t()) + n.b2[i], bits[1]).clamp(0, 16384);
    outputs.push_back(
        Scale(at::matmul(second, n.w3[i]) + n.b3[i], 13 + bits[2] - 16).clamp(-(1 << 26), 1 << 26));
  }
  return at::stack(outputs, 1);
}

}  // namespace

at::Tensor ReferenceLogits(const PolicyTensors& t, const at::Tensor& tokens) {
  const at::Tensor weights = Long(t.gate_weights, {128, 48}), bias = Long(t.gate_bias, {128});
  const at::Tensor head = Long(t.head_weights, {kHeadRows, 32}), head_bias = Long(t.head_bias, {kHeadRows});
  const at::Tensor sigmoid = Long(t.sigmoid_table, {2048}), tanh = Long(t.tanh_table, {2048});
  at::Tensor hidden = at::zeros({32}, at::kLong), cell = at::zeros({32}, at::kLong);
  std::vector<at::Tensor> logits;
  for (int64_t call = 0; call < tokens.size(0); ++call) {
    const at::Tensor sums = at::matmul(weights, at::cat({tokens[call], hidden})) + bias;
    const int64_t bits = 12 + t.structure.gate_fraction_bits - 7;
    const at::Tensor in = LookUp(sigmoid, sums.narrow(0, 0, 32), bits);
    const at::Tensor forget = LookUp(sigmoid, sums.narrow(0, 32, 32), bits);
    const at::Tensor candidate = LookUp(tanh, sums.narrow(0, 64, 32), bits);
    const at::Tensor out = LookUp(sigmoid, sums.narrow(0, 96, 32), bits);
    cell = Scale(forget * cell + in * candidate, 15).clamp(-32767, 32767);
    hidden = Scale(out * LookUp(tanh, cell, 5), 15);
    logits.push_back(Scale(at::matmul(head, hidden) + head_bias, t.structure.head_fraction_bits));
  }
  return at::stack(logits);
}

at::Tensor ReferenceResiduals(const PolicyTensors& t, const at::Tensor& features) {
  return Networks({Long(t.config_weights_1, {3, 48, 32}), Long(t.config_bias_1, {3, 48}),
                   Long(t.config_weights_2, {3, 48, 48}), Long(t.config_bias_2, {3, 48}),
                   Long(t.config_weights_3, {3, 48}), Long(t.config_bias_3, {3})},
                  t.config.fraction_bits, features);
}

at::Tensor ReferenceEffects(const PolicyTensors& t, const at::Tensor& features) {
  return Networks({Long(t.effect_weights_1, {3, 32, 48}), Long(t.effect_bias_1, {3, 32}),
                   Long(t.effect_weights_2, {3, 32, 32}), Long(t.effect_bias_2, {3, 32}),
                   Long(t.effect_weights_3, {3, 32}), Long(t.effect_bias_3, {3})},
                  t.effect.fraction_bits, features);
}

// Computes every leaf at once: a row's leaf is the one for which all five comparisons on its path agree.
at::Tensor ReferenceTreeResiduals(const PolicyTensors& t, const at::Tensor& features) {
  const at::Tensor nodes = Long(t.tree_nodes, {kTrees, 31, 2}), leaves = Long(t.tree_leaves, {kTrees, 32});
  at::Tensor sum = at::zeros({features.size(0)}, at::kLong) + t.trees.base;
  for (int64_t tree = 0; tree < t.trees.count; ++tree) {
    const at::Tensor compared =
        features.index_select(1, nodes[tree].select(1, 0)).ge(nodes[tree].select(1, 1)).to(at::kLong);
    for (int64_t leaf = 0; leaf < 32; ++leaf) {
      at::Tensor reached = at::zeros({features.size(0)}, at::kLong) + 1;
      for (int64_t node = 31 + leaf; node > 0; node = (node - 1) / 2) {
        const at::Tensor right = compared.select(1, (node - 1) / 2);
        reached = reached * (node % 2 == 0 ? right : 1 - right);
      }
      sum = sum + reached * leaves[tree][leaf];
    }
  }
  return sum;
}

void FillGoldenOutputs(PolicyTensors& t) {
  const at::Tensor tokens = Long(t.golden_tokens, {kGoldenPerAgent, kTokenFeatures});
  for (int64_t first = 0; first < kGoldenPerAgent; first += kGoldenSequence) {
    CopyOut(ReferenceLogits(t, tokens.narrow(0, first, kGoldenSequence)), t.golden_logits[first]);
  }
  const at::Tensor features = Long(t.golden_features, {kGoldenPerAgent, kConfigInputs});
  CopyOut(ReferenceResiduals(t, features), t.golden_residuals[0]);
  CopyOut(ReferenceTreeResiduals(t, features), t.golden_tree_residuals);
  if (t.effect.count == 0) return;
  const at::Tensor inputs = Long(t.golden_effect_features, {kGoldenPerAgent, kEffectInputs});
  CopyOut(ReferenceEffects(t, inputs), t.golden_effects[0]);
}

}  // namespace dynamiccl::agents
