// SPDX-License-Identifier: Apache-2.0
#include "agents/structure/bounded_lstm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace dynamiccl::agents {
namespace {

constexpr int64_t kSequences = 3, kCalls = 40, kHidden = 4;

struct Layer {
  at::Tensor inputs, weights;
};

// Returns a layer whose forget gates are open and whose candidates have mostly one sign, so that the cells
// grow up to the bound.
Layer RandomLayer(uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  at::Tensor inputs = at::empty({kSequences, kCalls, 4 * kHidden}).uniform_(-1, 2, generator);
  inputs.narrow(2, kHidden, kHidden).add_(3);
  const at::Tensor weights = at::empty({4 * kHidden, kHidden}).uniform_(-0.5, 0.5, generator);
  return {inputs.requires_grad_(true), weights.clone().requires_grad_(true)};
}

// The definition of the LSTM in LibTorch's own operations, which also give its gradients.
at::Tensor Defined(const Layer& layer, double bound) {
  at::Tensor hidden = at::zeros({kSequences, kHidden}), cell = hidden;
  std::vector<at::Tensor> outputs;
  for (int64_t call = 0; call < kCalls; ++call) {
    const auto gates = (layer.inputs.select(1, call) + hidden.matmul(layer.weights.t())).chunk(4, 1);
    cell = (gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh()).clamp(-bound, bound);
    hidden = gates[3].sigmoid() * cell.tanh();
    outputs.push_back(hidden);
  }
  return at::stack(outputs, 1);
}

// Compares the gradients of a weighted sum of the outputs. Each output has its own weight.
void ExpectSameGradients(const Layer& layer, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor weights = at::empty_like(a).uniform_(-1, 1, at::detail::createCPUGenerator(9));
  const std::vector<at::Tensor> of = {layer.inputs, layer.weights};
  const std::vector<at::Tensor> sum_a = {(a * weights).sum()}, sum_b = {(b * weights).sum()};
  const auto one = torch::autograd::grad(sum_a, of), other = torch::autograd::grad(sum_b, of);
  for (size_t i = 0; i < of.size(); ++i) EXPECT_TRUE(at::allclose(one[i], other[i], 1e-3, 1e-5)) << i;
}

TEST(BoundedLstm, IsTheDefinitionWithItsGradients) {
  for (const double bound : {0.5, 3.0, 1e9}) {
    const Layer layer = RandomLayer(1);
    const at::Tensor fast = BoundedLstm(layer.inputs, layer.weights, bound), defined = Defined(layer, bound);
    EXPECT_TRUE(at::allclose(fast, defined, 1e-5, 1e-6)) << bound;
    ExpectSameGradients(layer, fast, defined);
  }
}

TEST(BoundedLstm, WithoutAReachedBoundIsLibTorchs) {
  const Layer layer = RandomLayer(2);
  const at::Tensor state = at::zeros({1, kSequences, kHidden}), none = at::zeros({4 * kHidden});
  // The identity as weights, so that at::lstm uses the inputs as they are.
  const at::Tensor unit = at::eye(4 * kHidden);
  const std::vector<at::Tensor> states = {state, state}, weights = {unit, layer.weights, none, none};
  const at::Tensor output = std::get<0>(at::lstm(layer.inputs, states, weights, /*has_biases=*/true,
                                                 /*num_layers=*/1, /*dropout=*/0.0, /*train=*/true,
                                                 /*bidirectional=*/false, /*batch_first=*/true));
  EXPECT_TRUE(at::allclose(BoundedLstm(layer.inputs, layer.weights, 1e9), output, 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(BoundedLstm(layer.inputs, layer.weights, 1.0), output, 1e-2, 1e-2));
}

TEST(BoundedLstm, GoesOnFromAState) {
  const Layer layer = RandomLayer(3);
  const at::Tensor whole = BoundedLstm(layer.inputs, layer.weights, 3);
  BoundedLstmState state{at::zeros({kSequences, kHidden}), at::zeros({kSequences, kHidden})};
  for (int64_t from = 0; from < kCalls; from += kCalls / 4) {
    const at::Tensor part = BoundedLstm(layer.inputs.narrow(1, from, kCalls / 4), layer.weights, 3, &state);
    EXPECT_TRUE(at::allclose(part, whole.narrow(1, from, kCalls / 4), 1e-5, 1e-6)) << from;
    EXPECT_TRUE(at::equal(state.hidden, part.select(1, part.size(1) - 1)));
    EXPECT_FALSE(state.hidden.requires_grad()) << "no gradient goes back beyond the stretch";
  }
  EXPECT_LE(state.cells.abs().max().item<double>(), 3);
}

}  // namespace
}  // namespace dynamiccl::agents
