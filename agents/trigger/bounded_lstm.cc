// SPDX-License-Identifier: Apache-2.0
#include "agents/trigger/bounded_lstm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace dynamiccl::agents {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum Gate : int64_t { kInput, kForget, kCandidate, kOutput };

at::Tensor Part(const at::Tensor& gates, Gate gate, int64_t count = 1) {
  const int64_t hidden = gates.size(-1) / 4;
  return gates.narrow(-1, gate * hidden, count * hidden);
}

// What a backward pass needs, call by call.
struct Steps {
  at::Tensor gates;     // [call, sequence, 4 hidden], activated
  at::Tensor cells;     // [call + 1, sequence, hidden], cut; the first is before all calls
  at::Tensor free;      // [call, sequence, hidden]: 1 where the cell was within the bound
  at::Tensor squashed;  // [call, sequence, hidden]: tanh of the cell
  at::Tensor hidden;    // [call + 1, sequence, hidden]; the first is before all calls
};

void Forward(Steps& steps, const at::Tensor& turned_weights, double bound, int64_t call) {
  const at::Tensor gates = steps.gates[call], cell = steps.cells[call + 1];
  gates.addmm_(steps.hidden[call], turned_weights);
  Part(gates, kInput, 2).sigmoid_();
  Part(gates, kCandidate).tanh_();
  Part(gates, kOutput).sigmoid_();
  cell.copy_(Part(gates, kForget) * steps.cells[call]);
  cell.addcmul_(Part(gates, kInput), Part(gates, kCandidate));
  steps.free[call].copy_(cell.abs().le(bound));
  cell.clamp_(-bound, bound);
  steps.squashed[call].copy_(cell.tanh());
  steps.hidden[call + 1].copy_(Part(gates, kOutput) * steps.squashed[call]);
}

// From the gradient of a call's hidden state and of its cell to that of its gates' sums; `cell` becomes the
// gradient of the cell before.
at::Tensor Backward(const Steps& steps, const at::Tensor& hidden, at::Tensor& cell, int64_t call) {
  const at::Tensor gates = steps.gates[call], squashed = steps.squashed[call];
  const at::Tensor in = Part(gates, kInput), forget = Part(gates, kForget),
                   candidate = Part(gates, kCandidate), out = Part(gates, kOutput);
  cell = (cell + hidden * out * (1 - squashed * squashed)) * steps.free[call];
  const std::vector<at::Tensor> sums = {
      cell * candidate * in * (1 - in), cell * steps.cells[call] * forget * (1 - forget),
      cell * in * (1 - candidate * candidate), hidden * squashed * out * (1 - out)};
  cell = cell * forget;
  return at::cat(sums, 1);
}

struct Layer : torch::autograd::Function<Layer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& inputs,
                            const at::Tensor& hidden_weights, double bound, BoundedLstmState* state) {
    const int64_t sequences = inputs.size(0), calls = inputs.size(1), hidden = hidden_weights.size(1);
    Steps steps{inputs.transpose(0, 1).clone(at::MemoryFormat::Contiguous),
                at::zeros({calls + 1, sequences, hidden}), at::empty({calls, sequences, hidden}),
                at::empty({calls, sequences, hidden}), at::zeros({calls + 1, sequences, hidden})};
    if (state != nullptr) {
      steps.hidden[0].copy_(state->hidden);
      steps.cells[0].copy_(state->cells);
    }
    const at::Tensor turned = hidden_weights.t();
    for (int64_t call = 0; call < calls; ++call) Forward(steps, turned, bound, call);
    if (state != nullptr) *state = {steps.hidden[calls].clone(), steps.cells[calls].clone()};
    context->save_for_backward(
        {steps.gates, steps.cells, steps.free, steps.squashed, steps.hidden, hidden_weights});
    return steps.hidden.narrow(0, 1, calls).transpose(0, 1).contiguous();
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const variable_list saved = context->get_saved_variables();
    const Steps steps{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor &weights = saved[5], wanted = outputs[0].transpose(0, 1);
    const int64_t calls = steps.gates.size(0), hidden = weights.size(1);
    const at::Tensor sums = at::empty_like(steps.gates);
    at::Tensor cell = at::zeros_like(steps.cells[0]), later = cell;
    for (int64_t call = calls - 1; call >= 0; --call) {
      sums[call].copy_(Backward(steps, wanted[call] + later, cell, call));
      later = sums[call].matmul(weights);
    }
    const at::Tensor before = steps.hidden.narrow(0, 0, calls).reshape({-1, hidden});
    return {sums.transpose(0, 1), sums.reshape({-1, 4 * hidden}).t().matmul(before), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor BoundedLstm(const at::Tensor& inputs, const at::Tensor& hidden_weights, double bound,
                       BoundedLstmState* state) {
  return Layer::apply(inputs, hidden_weights, bound, state);
}

}  // namespace dynamiccl::agents
