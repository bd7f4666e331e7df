// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of the layer as one autograd function. Memory is laid out call by call, so that
// multiplying a call's hidden states by the hidden weights is one matrix product over all sequences. tanh(x)
// is computed as 2 sigmoid(2 x) - 1, so that one evaluation of the sigmoid serves all four gates. For this
// reason the sums of the candidate gate are doubled beforehand. All products are those of repeatable_math.h.
#include "agents/structure/bounded_lstm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "agents/repeatable_math.h"

namespace dynamiccl::agents {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum Gate : int64_t { kInput, kForget, kCandidate, kOutput };

// A view of the columns that belong to one gate.
at::Tensor Part(const at::Tensor& gates, Gate gate) {
  const int64_t hidden = gates.size(-1) / 4;
  return gates.narrow(-1, gate * hidden, hidden);
}

// The values that the backward pass needs, call by call, in fp32.
struct Steps {
  // [call, sequence, 4 * hidden]: values of the gates, after their activation functions.
  at::Tensor gates;
  // [call + 1, sequence, hidden]: the clamped cells. The first entry is the state before all calls.
  at::Tensor cells;
  // [call, sequence, hidden]: 1 where the cell was within the bound, otherwise 0.
  at::Tensor free;
  // [call, sequence, hidden]: tanh of the cell.
  at::Tensor squashed;
  // [call + 1, sequence, hidden]: the hidden states. The first entry is the state before all calls.
  at::Tensor hidden;
};

// The state of one sequence at one call: pointers to rows of `hidden` numbers. For so few numbers LibTorch's
// operations take longer to start than to compute. So only matrix products and functions use LibTorch, and
// the rest is written as loops.
struct Cell {
  int64_t hidden;
  // The values of the four gates, a row for each.
  float* gates;
  // Cells before and after the call. `state` is the hidden state after the call.
  const float* before;
  float* after;
  float* free;
  float* squashed;
  float* state;

  Cell(const Steps& steps, int64_t call, int64_t sequence)
      : hidden(steps.hidden.size(2)),
        gates(steps.gates.data_ptr<float>() + (call * steps.gates.size(1) + sequence) * 4 * hidden) {
    const int64_t sequences = steps.gates.size(1);
    const int64_t row = (call * sequences + sequence) * hidden;
    before = steps.cells.data_ptr<float>() + row;
    after = steps.cells.data_ptr<float>() + row + sequences * hidden;
    free = steps.free.data_ptr<float>() + row;
    squashed = steps.squashed.data_ptr<float>() + row;
    state = steps.hidden.data_ptr<float>() + row + sequences * hidden;
  }
  float* gate(Gate gate) const { return gates + gate * hidden; }
};

// Computes the clamped cell from the values of the four gates. The candidate gate's value is still sigmoid(2
// x) here, and tanh(x) = 2 sigmoid(2 x) - 1 follows from it.
void UpdateCell(const Cell& cell, float bound) {
  const float *in = cell.gate(kInput), *forget = cell.gate(kForget);
  float* candidate = cell.gate(kCandidate);
  for (int64_t i = 0; i < cell.hidden; ++i) {
    candidate[i] = 2 * candidate[i] - 1;
    const float sum = forget[i] * cell.before[i] + in[i] * candidate[i];
    cell.free[i] = std::abs(sum) <= bound ? 1.0f : 0.0f;
    cell.after[i] = std::clamp(sum, -bound, bound);
  }
}

// Computes the hidden state. `squashed` is still sigmoid(2 c) here.
void UpdateState(const Cell& cell) {
  const float* out = cell.gate(kOutput);
  for (int64_t i = 0; i < cell.hidden; ++i) {
    cell.squashed[i] = 2 * cell.squashed[i] - 1;
    cell.state[i] = out[i] * cell.squashed[i];
  }
}

// Computes one call of all sequences. `turned_weights` is [hidden, 4 * hidden] with the candidate's columns
// doubled.
void Forward(const Steps& steps, const at::Tensor& turned_weights, float bound, int64_t call) {
  const at::Tensor gates = steps.gates[call];
  const int64_t sequences = gates.size(0), hidden = turned_weights.size(0);
  AddProduct(steps.hidden[call].const_data_ptr<float>(), turned_weights.const_data_ptr<float>(),
             gates.data_ptr<float>(), {sequences, hidden, 4 * hidden});
  gates.sigmoid_();
  for (int64_t sequence = 0; sequence < sequences; ++sequence) UpdateCell(Cell(steps, call, sequence), bound);
  at::Tensor squashed = steps.squashed[call];
  at::mul_out(squashed, steps.cells[call + 1], 2);
  squashed.sigmoid_();
  for (int64_t sequence = 0; sequence < sequences; ++sequence) UpdateState(Cell(steps, call, sequence));
}

// Computes the derivatives of one sequence at one call. The gradient of the hidden state has two parts:
// `wanted` comes from the loss and `hidden` from the next call. On entry `later` is the gradient of this
// call's cell, and on return that of the previous call's cell. `sums` receives the gradients of the four
// gates' sums.
void BackwardCell(const Cell& cell, const float* wanted, const float* hidden, float* later, float* sums) {
  const float *in = cell.gate(kInput), *forget = cell.gate(kForget), *candidate = cell.gate(kCandidate),
              *out = cell.gate(kOutput);
  const int64_t rows = cell.hidden;
  for (int64_t i = 0; i < rows; ++i) {
    const float squashed = cell.squashed[i], of_hidden = wanted[i] + hidden[i];
    const float of_cell = (later[i] + of_hidden * out[i] * (1 - squashed * squashed)) * cell.free[i];
    sums[i] = of_cell * candidate[i] * in[i] * (1 - in[i]);
    sums[rows + i] = of_cell * cell.before[i] * forget[i] * (1 - forget[i]);
    sums[2 * rows + i] = of_cell * in[i] * (1 - candidate[i] * candidate[i]);
    sums[3 * rows + i] = of_hidden * squashed * out[i] * (1 - out[i]);
    later[i] = of_cell * forget[i];
  }
}

// Returns the gradients of all gates' sums, [call, sequence, 4 * hidden], computed from the last call to the
// first. `wanted` is [call, sequence, hidden].
at::Tensor Backward(const Steps& steps, const at::Tensor& wanted, const at::Tensor& weights) {
  const int64_t calls = steps.gates.size(0), sequences = steps.gates.size(1), hidden = weights.size(1);
  const at::Tensor sums = at::empty_like(steps.gates);
  const at::Tensor of_cell = at::zeros({sequences, hidden});
  const at::Tensor of_hidden = at::zeros({sequences, hidden});
  for (int64_t call = calls - 1; call >= 0; --call) {
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const int64_t row = (call * sequences + sequence) * hidden;
      BackwardCell(Cell(steps, call, sequence), wanted.data_ptr<float>() + row,
                   of_hidden.data_ptr<float>() + sequence * hidden,
                   of_cell.data_ptr<float>() + sequence * hidden, sums.data_ptr<float>() + 4 * row);
    }
    of_hidden.zero_();
    AddProduct(sums[call].const_data_ptr<float>(), weights.const_data_ptr<float>(),
               of_hidden.data_ptr<float>(), {sequences, 4 * hidden, hidden});
  }
  return sums;
}

// The autograd function: the gradients of `hidden_weights` are one matrix product over all calls at the end.
struct Layer : torch::autograd::Function<Layer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& inputs,
                            const at::Tensor& hidden_weights, double bound, BoundedLstmState* state) {
    const int64_t sequences = inputs.size(0), calls = inputs.size(1), hidden = hidden_weights.size(1);
    const Steps steps{inputs.transpose(0, 1).clone(at::MemoryFormat::Contiguous),
                      at::zeros({calls + 1, sequences, hidden}), at::empty({calls, sequences, hidden}),
                      at::empty({calls, sequences, hidden}), at::zeros({calls + 1, sequences, hidden})};
    if (state != nullptr) {
      steps.hidden[0].copy_(state->hidden);
      steps.cells[0].copy_(state->cells);
    }
    const at::Tensor turned = hidden_weights.t().clone(at::MemoryFormat::Contiguous);
    Part(steps.gates, kCandidate).mul_(2);
    Part(turned, kCandidate).mul_(2);
    for (int64_t call = 0; call < calls; ++call) Forward(steps, turned, static_cast<float>(bound), call);
    if (state != nullptr) *state = {steps.hidden[calls].clone(), steps.cells[calls].clone()};
    context->save_for_backward(
        {steps.gates, steps.cells, steps.free, steps.squashed, steps.hidden, hidden_weights});
    return steps.hidden.narrow(0, 1, calls).transpose(0, 1).contiguous();
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const variable_list saved = context->get_saved_variables();
    const Steps steps{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor wanted = outputs[0].transpose(0, 1).contiguous();
    const int64_t calls = steps.gates.size(0), hidden = steps.hidden.size(2);
    const at::Tensor sums = Backward(steps, wanted, saved[5].contiguous());
    const at::Tensor of_weights = at::zeros(saved[5].sizes());
    AddTransposedProduct(sums.const_data_ptr<float>(), steps.hidden.const_data_ptr<float>(),
                         of_weights.data_ptr<float>(), {4 * hidden, calls * sums.size(1), hidden});
    return {sums.transpose(0, 1), of_weights, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor BoundedLstm(const at::Tensor& inputs, const at::Tensor& hidden_weights, double bound,
                       BoundedLstmState* state) {
  return Layer::apply(inputs, hidden_weights, bound, state);
}

}  // namespace dynamiccl::agents
