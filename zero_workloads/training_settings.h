// SPDX-License-Identifier: Apache-2.0
// Everything that a training run is told, and which of it makes no sense.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/data/text_dataset.h"
#include "zero_workloads/models/gpt.h"

namespace dynamiccl::zero {

struct TrainingSettings {
  int stage = 0;
  int64_t steps = 100;
  GptShape model;
  int64_t batch = 8;        // sequences a micro-step, over all ranks
  int64_t micro_steps = 1;  // batches whose gradients a step averages
  int64_t bucket_bytes = 4 << 20;
  std::string dtype = "fp32";
  uint64_t seed = 1;
  TextSource text;
  double learning_rate = 1e-3;
  int64_t warmup_steps = 0;
  double weight_decay = 0.1;
  double clip_norm = 1.0;
  bool overlap = true;
  bool prefetch = true;
  int threads = 1;         // of LibTorch, a rank
  int64_t eval_every = 0;  // steps between evaluations on the held-out text; 0: none before the end
  bool evaluate_at_end = false;
  int64_t log_every = 10;  // steps between progress lines
  int64_t join_timeout_seconds = 30;
  std::string json;  // path of JSON lines; empty: none

  // One line with all settings that must be equal on all ranks.
  std::string Canonical() const;
};

// What no run can do, whatever its world size and text.
Status Validate(const TrainingSettings& settings);
// What this world size or this text cannot do.
Status ValidateForRun(const TrainingSettings& settings, int world, const TextDataset& text);

}  // namespace dynamiccl::zero
