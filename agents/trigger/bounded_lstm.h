// SPDX-License-Identifier: Apache-2.0
// An LSTM layer whose cells are cut to a bound after every step, as integers of 16 bits must be. LibTorch's
// own layer has no bound; a graph of its small operations would take three times as long to learn from.
#pragma once

#include <ATen/core/Tensor.h>

namespace dynamiccl::agents {

// Hidden states and cells [sequence, hidden].
struct BoundedLstmState {
  at::Tensor hidden;
  at::Tensor cells;
};

// `inputs` [sequence, call, 4 hidden]: each call's part of the gates' sums (input, forget, cell, output
// gate), bias included. `hidden_weights` [4 hidden, hidden]. Hidden states [sequence, call, hidden], each
// sequence from an empty state, or from `state`, which becomes that after the last call and passes no
// gradient on. A cell at the bound passes none either.
at::Tensor BoundedLstm(const at::Tensor& inputs, const at::Tensor& hidden_weights, double bound,
                       BoundedLstmState* state = nullptr);

}  // namespace dynamiccl::agents
