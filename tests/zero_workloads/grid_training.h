// SPDX-License-Identifier: Apache-2.0
// Trains a small GPT on a grid of threads. Reports what the ranks held at every step.
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
  std::vector<float> losses, gradient_norms;  // of rank 0, by step
  std::string first_digest, last_digest;
  // By step and rank: a digest of the parameters that every tensor rank holds whole, as the forward pass used
  // them.
  std::vector<std::vector<std::string>> whole_parameters;
  std::map<std::string, at::Tensor> parameters;  // whole and flat, after the last step
};

// 2 blocks, hidden size 32, 4 heads, sequence length 16, vocabulary of 256 bytes. The batch of all data ranks
// is 8.
GptShape GridModel();
GridOutcome TrainOnGrid(const GridTraining& training);
// Returns the norm of the first step's mean gradient. It is computed in fp64 from the gradients of one rank
// without an engine.
double FirstGradientNorm();

}  // namespace dynamiccl::zero
