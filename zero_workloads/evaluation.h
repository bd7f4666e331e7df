// SPDX-License-Identifier: Apache-2.0
// How well the model predicts a text: bits a byte over the whole of it.
#pragma once

#include <cstdint>
#include <span>

#include "zero_workloads/models/gpt.h"
#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

struct EvaluationShape {
  int64_t sequence = 128;
  int64_t rows = 16;  // windows that a rank computes at a time
  at::Device device = at::kCPU;
};

// The text is cut into windows without overlap, so a byte is predicted from 0 to sequence - 1 bytes before
// it; every byte but the first counts once. All ranks call it and get the same number.
double BitsPerByte(const Gpt& model, UnitHooks* hooks, ProcessGroup* group, std::span<const uint8_t> text,
                   const EvaluationShape& shape);

}  // namespace dynamiccl::zero
