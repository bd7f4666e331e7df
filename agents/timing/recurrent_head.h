// SPDX-License-Identifier: Apache-2.0
// An LSTM that reads residuals call by call and says which regime they tell of: what the shipped detector
// would have to be replaced by if it won at equal false alarms. Trained in LibTorch, run without it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "agents/timing/call_residuals.h"
#include "agents/timing/change_detector.h"

namespace dynamiccl::agents {

inline constexpr int kHeadInputs = 6;
inline constexpr int kHeadHidden = 24;
inline constexpr int kHeadClasses = kRegimes;

// Parameters in LibTorch's layout (gates: input, forget, cell, output).
struct RecurrentHead {
  at::Tensor input_weights;   // [4 x hidden, inputs]
  at::Tensor hidden_weights;  // [4 x hidden, hidden]
  at::Tensor gate_bias;       // [4 x hidden]
  at::Tensor head_weights;    // [classes, hidden]
  at::Tensor head_bias;       // [classes]

  // [sequence, call, inputs] to logits [sequence, call, classes], from an empty state.
  at::Tensor Logits(const at::Tensor& inputs) const;
  std::vector<at::Tensor> parameters() const;
};

using HeadInput = std::array<float, kHeadInputs>;
HeadInput InputOf(const CallResidual& residual);

struct HeadTraining {
  uint64_t seed = 1;
  int iterations = 600;
  int batch = 32;
  int length = 192;  // calls of a window
  double learning_rate = 1e-2;
};

// Cross entropy of each call's regime; of changes put into quiet runs and recorded ones.
RecurrentHead TrainHead(const std::vector<TimingRun>& runs, const HeadTraining& training);

// Its step by step arithmetic, float.
class HeadState {
 public:
  explicit HeadState(const RecurrentHead& head);
  // Probabilities of the regimes after this call.
  std::array<double, kHeadClasses> Step(const HeadInput& input);
  void Forget();

 private:
  struct Weights {
    std::vector<float> input, hidden, bias, head, head_bias;
  };
  std::shared_ptr<const Weights> weights_;  // of all states of one head
  std::array<float, kHeadHidden> hidden_{};
  std::array<float, kHeadHidden> cell_{};
};

// Alarms where the log odds of a change, smoothed over about ten calls, pass the threshold less 10.
std::unique_ptr<DetectorKind> RecurrentKind(const RecurrentHead& head);

}  // namespace dynamiccl::agents
