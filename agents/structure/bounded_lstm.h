// SPDX-License-Identifier: Apache-2.0
// An LSTM layer whose cells are clamped to a bound after every call, as 16-bit integers require. LibTorch's
// own layer has no bound, and a graph of its small operations would take three times as long to train.
//
// The equations (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000), for call t:
//
//   i, f, o = sigmoid(x_t W + h_{t-1} U + b)     input, forget and output gate
//   g       = tanh(x_t W + h_{t-1} U + b)        candidate
//   c_t     = clamp(f * c_{t-1} + i * g, -bound, bound)
//   h_t     = o * tanh(c_t)
#pragma once

#include <ATen/core/Tensor.h>

namespace dynamiccl::agents {

// The state of a batch between two stretches of calls; each tensor is fp32 [sequence, hidden].
struct BoundedLstmState {
  at::Tensor hidden;
  at::Tensor cells;
};

// Runs the layer over all calls and returns the hidden states, fp32 [sequence, call, hidden].
//
// `inputs` [sequence, call, 4 * hidden] holds x_t W + b, each call's part of the gates' sums, in the order
// input, forget, candidate, output. `hidden_weights` is U transposed, [4 * hidden, hidden]. Each sequence
// starts from an empty state, or from `state`, which then becomes the state after the last call. No gradient
// passes through the state or through a cell at the bound.
at::Tensor BoundedLstm(const at::Tensor& inputs, const at::Tensor& hidden_weights, double bound,
                       BoundedLstmState* state = nullptr);

}  // namespace dynamiccl::agents
