// SPDX-License-Identifier: Apache-2.0
// Everything that a training run is told, and which of it makes no sense.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/checkpoint/checkpoint_settings.h"
#include "zero_workloads/data/text_dataset.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/optimizer/adamw.h"
#include "zero_workloads/optimizer/loss_scale.h"
#include "zero_workloads/parallel/grid.h"
#include "zero_workloads/zero_r/residual_settings.h"

namespace dynamiccl::zero {

struct TrainingSettings {
  int stage = 0;
  int64_t steps = 100;
  GptShape model;
  int64_t batch = 8;        // sequences a micro-step, over all ranks; 0: as many as fit
  int64_t micro_steps = 1;  // batches whose gradients a step averages
  int64_t bucket_bytes = 4 << 20;
  std::string unit = "block";              // what is gathered and, for "parameter", summed at once
  std::string exchange = "collective";     // or owner: one Reduce and Broadcast for each rank's part
  int tensor_parallel = 1;                 // ranks that compute one replica of the model together
  int shard_group = 0;                     // GridSizes::shard
  int secondary_group = 0;                 // GridSizes::secondary
  bool sequence_parallel = false;          // they divide the sequence too, where they do not divide layers
  std::string dtype = "fp32";              // fp32, bf16, fp16
  std::string reduce_type = "model";       // of gradients while ranks sum them: model (dtype) or fp32
  std::string accumulation = "default";    // local, sharded; default: local in stages 0 and 1
  std::string accumulation_type = "fp32";  // of gradients added up locally: fp32 or model
  std::string loss_scale = "default";      // dynamic, or a number; default: dynamic with fp16, else 1
  double first_loss_scale = 65536;         // dynamic: to start with
  double least_loss_scale = 1;
  int64_t loss_scale_growth = 1000;   // steps without overflow until the scale doubles
  int64_t loss_scale_hysteresis = 2;  // overflows until it halves
  uint64_t seed = 1;
  TextSource text;
  double learning_rate = 1e-3;
  int64_t warmup_steps = 0;
  AdamWSettings adamw;
  double clip_norm = 1.0;
  bool overlap = true;
  bool prefetch = true;
  int threads = 1;         // of LibTorch, a rank
  int64_t eval_every = 0;  // steps between evaluations on the held-out text; 0: none before the end
  bool evaluate_at_end = false;
  int64_t log_every = 10;  // steps between progress lines
  int64_t join_timeout_seconds = 30;
  std::string memory_taken;                // TakenMemory::Parse
  std::string offload_optimizer = "none";  // OptimizerOffload::Parse
  int64_t offload_buffer_bytes = 16 << 20;
  ResidualSettings residual;
  std::string json;         // path of JSON lines; empty: none
  std::string tensorboard;  // folder for TensorBoard's events; empty: none
  CheckpointSettings checkpoint;

  at::ScalarType type() const;  // that `dtype` names
  bool accumulates_locally() const;
  GridSizes groups() const { return {tensor_parallel, shard_group, secondary_group}; }
  // What `loss_scale` and its companions say.
  LossScaleSettings LossScaling() const;
  // One line with all settings that must be equal on all ranks.
  std::string Canonical() const;
};

// What no run can do, whatever its world size and text.
Status Validate(const TrainingSettings& settings);
// What this number of ranks or this text cannot do.
Status ValidateForRun(const TrainingSettings& settings, int world, const TextDataset& text);

}  // namespace dynamiccl::zero
