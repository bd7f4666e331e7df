// SPDX-License-Identifier: Apache-2.0
// Trains a small GPT on a grid of threads and shows what its ranks held at every step.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "zero_workloads/models/gpt.h"

namespace dynamiccl::zero {

struct GridTraining {
  int data = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  int stage = 0;
  int64_t steps = 30;
  int64_t micro_steps = 1;
  at::ScalarType type = at::kFloat;
  int shard_group = 0;
};

struct GridOutcome {
  std::vector<float> losses, gradient_norms;  // by step, of rank 0
  std::string first_digest, last_digest;
  // By step and rank: a digest over the parameters that every tensor rank holds whole, as the forward pass
  // saw them.
  std::vector<std::vector<std::string>> whole_parameters;
  std::map<std::string, at::Tensor> parameters;  // after the last step, whole and flat
};

// Blocks 2, hidden 32, heads 4, sequence 16, batch 8 over the data ranks, 256 bytes of vocabulary.
GptShape GridModel();
GridOutcome TrainOnGrid(const GridTraining& training);
// The norm of the first step's mean gradient, added up in fp64 from the gradients of one rank without an
// engine.
double FirstGradientNorm();

}  // namespace dynamiccl::zero
