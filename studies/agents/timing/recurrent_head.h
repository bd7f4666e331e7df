// SPDX-License-Identifier: Apache-2.0
// An LSTM that reads residuals call by call and predicts their regime. If it won at equal false alarms, it
// would have to replace the shipped detector. It is trained in LibTorch and runs without it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "studies/agents/timing/call_residuals.h"
#include "studies/agents/timing/change_detector.h"

namespace dynamiccl::agents {

// Number of inputs, hidden units and classes of the network.
inline constexpr int kHeadInputs = 6;
inline constexpr int kHeadHidden = 24;
inline constexpr int kHeadClasses = kRegimes;

// Parameters in LibTorch's layout (gates in the order input, forget, candidate, output), fp32.
struct RecurrentHead {
  // [4 * kHeadHidden, kHeadInputs].
  at::Tensor input_weights;
  // [4 * kHeadHidden, kHeadHidden].
  at::Tensor hidden_weights;
  // [4 * kHeadHidden].
  at::Tensor gate_bias;
  // [kHeadClasses, kHeadHidden].
  at::Tensor head_weights;
  // [kHeadClasses].
  at::Tensor head_bias;

  // Computes logits [sequence, call, kHeadClasses] from inputs [sequence, call, kHeadInputs]. Each sequence
  // starts from an empty state.
  at::Tensor Logits(const at::Tensor& inputs) const;
  std::vector<at::Tensor> parameters() const;
};

using HeadInput = std::array<float, kHeadInputs>;
// The network's inputs for one call: residuals in spreads and in logarithms, and the spreads, all clamped to
// 2.
HeadInput InputOf(const CallResidual& residual);

// Settings of the training.
struct HeadTraining {
  uint64_t seed = 1;
  int iterations = 600;
  // Number of windows in a batch.
  int batch = 32;
  // Number of calls in a window.
  int length = 192;
  double learning_rate = 1e-2;
};

// Minimises the cross entropy of each call's regime, on runs with recorded changes and with changes inserted
// into quiet runs. Without both quiet and changed runs it returns an untrained head.
RecurrentHead TrainHead(const std::vector<TimingRun>& runs, const HeadTraining& training);

// The network's arithmetic in float, call by call, for one stream of calls.
class HeadState {
 public:
  explicit HeadState(const RecurrentHead& head);
  // Probabilities of the regimes after this call.
  std::array<double, kHeadClasses> Step(const HeadInput& input);
  // Returns to the empty state.
  void Forget();

 private:
  // The parameters as plain arrays, row by row.
  struct Weights {
    std::vector<float> input, hidden, bias, head, head_bias;
  };
  // Shared by all states of one head.
  std::shared_ptr<const Weights> weights_;
  std::array<float, kHeadHidden> hidden_{};
  std::array<float, kHeadHidden> cell_{};
};

// Raises an alarm when the log odds of a change, smoothed over about ten calls, exceed the threshold minus
// 10.
std::unique_ptr<DetectorKind> RecurrentKind(const RecurrentHead& head);

}  // namespace dynamiccl::agents
