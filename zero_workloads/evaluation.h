// SPDX-License-Identifier: Apache-2.0
// Evaluates how well the model predicts a text, in bits per byte over the whole text.
#pragma once

#include <cstdint>
#include <span>

#include "zero_workloads/models/gpt.h"
#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// Says how the text is cut and where the computation runs. The values are equal on all ranks.
struct EvaluationShape {
  int64_t sequence = 128;
  // Number of windows that a rank computes at a time. More windows need more memory.
  int64_t rows = 1;
  at::Device device = at::kCPU;
};

// Returns the bits that the model needs to predict one byte of the text. The text, of at least 2 bytes, is
// divided into windows without overlap. A byte is therefore predicted from between 0 and `sequence` - 1
// earlier bytes, and every byte except the first counts once. All ranks of `group` call the function and get
// the same number.
double BitsPerByte(const Gpt& model, UnitHooks* hooks, ProcessGroup* group, std::span<const uint8_t> text,
                   const EvaluationShape& shape);

}  // namespace dynamiccl::zero
