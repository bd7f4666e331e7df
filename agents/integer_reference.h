// SPDX-License-Identifier: Apache-2.0
// A second implementation of the integer arithmetic in docs/formats/policy_file.md, with LibTorch's int64
// tensors, where nothing can overflow. src/policy must reproduce its results bit for bit; golden vectors in
// each policy file check that. It shares no code with src/policy except the layout of the weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Runs the structure LSTM on one sequence from an empty state. `tokens` are int64 [call, kTokenFeatures]; the
// result is int64 [call, kHeadRows].
at::Tensor ReferenceLogits(const PolicyTensors& tensors, const at::Tensor& tokens);

// Evaluates the trees of the config agent. `features` are int64 [row, kConfigInputs]; the result is int64
// [row], with 16 fraction bits.
at::Tensor ReferenceTreeResiduals(const PolicyTensors& tensors, const at::Tensor& features);

// Evaluates the networks of the config agent. `features` are int64 [row, kConfigInputs]; the result is int64
// [row, kEnsemble], with 16 fraction bits.
at::Tensor ReferenceResiduals(const PolicyTensors& tensors, const at::Tensor& features);

// Evaluates the networks that predict effects on steps. `features` are int64 [row, kEffectInputs]; the result
// is int64 [row, kEnsemble], with 16 fraction bits.
at::Tensor ReferenceEffects(const PolicyTensors& tensors, const at::Tensor& features);

// Computes the golden outputs in `tensors` from the golden inputs there.
void FillGoldenOutputs(PolicyTensors& tensors);

}  // namespace dynamiccl::agents
