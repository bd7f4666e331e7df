// SPDX-License-Identifier: Apache-2.0
// The arithmetic of docs/formats/policy_file.md once more, in LibTorch's int64 tensors, where nothing can
// overflow: what src/policy must reproduce bit for bit. It shares no code with src/policy but the layout of
// the weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "src/policy/policy.h"

namespace dynamiccl::agents {

// tokens int64 [call, kTokenFeatures] of one sequence from an empty state; logits int64 [call, kHeadRows].
at::Tensor ReferenceLogits(const PolicyTensors& tensors, const at::Tensor& tokens);

// features int64 [row, kConfigInputs]; residuals int64 [row].
at::Tensor ReferenceTreeResiduals(const PolicyTensors& tensors, const at::Tensor& features);

// features int64 [row, kConfigInputs]; residuals int64 [row, kEnsemble].
at::Tensor ReferenceResiduals(const PolicyTensors& tensors, const at::Tensor& features);

// Fills the golden outputs from the golden inputs.
void FillGoldenOutputs(PolicyTensors& tensors);

}  // namespace dynamiccl::agents
