// SPDX-License-Identifier: Apache-2.0
// All settings of a training run, and the checks that reject invalid ones.
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

// The options of `train`; main.cc declares them with their explanations. The struct is large because each
// field is one option and validation looks at many of them together.
struct TrainingSettings {
  int stage = 0;
  int64_t steps = 100;
  GptShape model;
  // Number of sequences of a micro-step, over all ranks. 0 means as many as fit into memory.
  int64_t batch = 8;
  // Number of batches over which a step averages gradients.
  int64_t micro_steps = 1;
  int64_t bucket_bytes = 4 << 20;
  // Memory of buckets and sums of gradients: "ordinary", "registered" or "window" (buffer_memory.h).
  std::string bucket_memory = "ordinary";
  // The unit that is gathered in one call: "block", "half_block" or "parameter". With "parameter", each
  // unit's gradients are also summed in a call of their own.
  std::string unit = "block";
  // With unit "block", the number of neighbouring blocks that form one unit.
  int64_t unit_blocks = 1;
  // Says how shards are summed and gathered. "collective" uses ReduceScatter and AllGather, "owner" one
  // Reduce and one Broadcast for each rank's part, "all_reduce" AllReduce and AllGather. With "layer_owner",
  // one rank owns each unit whole: one Reduce brings the unit's gradients to the owner, and one Broadcast
  // sends its parameters from there.
  std::string exchange = "collective";
  // Number of ranks that compute one replica of the model together.
  int tensor_parallel = 1;
  // Number of ranks in a shard group (GridSizes::shard).
  int shard_group = 0;
  // Number of ranks that share a second copy (GridSizes::secondary).
  int secondary_group = 0;
  // If true, tensor ranks divide the sequence in those layers that tensor parallelism does not divide.
  bool sequence_parallel = false;
  // Type of parameters and activations: fp32, bf16 or fp16.
  std::string dtype = "fp32";
  // If false, master weights keep no more digits than the type `dtype` has: updates that round away are lost.
  bool master_weights = true;
  // Type of gradients while ranks sum them: "fp32", or "model" for the type `dtype`.
  std::string reduce_type = "model";
  // Says where the gradients of micro-steps are added up: "local" before they are summed over ranks,
  // "sharded" after. The default is local in stages 0 and 1, and sharded in stages 2 and 3.
  std::string accumulation = "default";
  // Type of gradients that are added up locally: "fp32", or "model" for the type `dtype`.
  std::string accumulation_type = "fp32";
  // "dynamic" or a number. The default is dynamic with fp16, and otherwise 1.
  std::string loss_scale = "default";
  // The first scale of dynamic loss scaling.
  double first_loss_scale = 65536;
  double least_loss_scale = 1;
  // With dynamic loss scaling, the number of steps without overflow until the scale doubles.
  int64_t loss_scale_growth = 1000;
  // With dynamic loss scaling, the number of overflows until the scale halves.
  int64_t loss_scale_hysteresis = 2;
  uint64_t seed = 1;
  TextSource text;
  double learning_rate = 1e-3;
  int64_t warmup_steps = 0;
  AdamWSettings adamw;
  double clip_norm = 1.0;
  bool overlap = true;
  // Stage 3: whether units are gathered ahead of the unit that computes, and how many.
  bool prefetch = true;
  int64_t prefetch_units = 1;
  // If true, the bucket size and prefetch may change between steps, on all ranks alike.
  bool live = false;
  // Number of LibTorch's threads in each rank.
  int threads = 1;
  // Number of steps between evaluations on the held-out text. 0 means none before the end.
  int64_t eval_every = 0;
  bool evaluate_at_end = false;
  // Number of steps between progress lines.
  int64_t log_every = 10;
  int64_t join_timeout_seconds = 30;
  // Memory that other programs take, as a schedule or a file; see TakenMemory::Parse.
  std::string memory_taken;
  // Place of the optimizer's states; see OptimizerOffload::Parse.
  std::string offload_optimizer = "none";
  int64_t offload_buffer_bytes = 16 << 20;
  ResidualSettings residual;
  // Path of the file of JSON lines. Empty means no such file.
  std::string json;
  // Folder for TensorBoard's events. Empty means no events.
  std::string tensorboard;
  CheckpointSettings checkpoint;

  // The type that `dtype` names.
  at::ScalarType type() const;
  bool accumulates_locally() const;
  // The number of units in a block. Each unit is checkpointed by itself.
  int64_t units_in_block() const { return unit == "half_block" ? 2 : 1; }
  // The number of blocks whose parameters form a unit, for estimates.
  double blocks_in_unit() const {
    return static_cast<double>(unit_blocks) / static_cast<double>(units_in_block());
  }
  int64_t units_ahead() const { return prefetch ? prefetch_units : 0; }
  GridSizes groups() const { return {tensor_parallel, shard_group, secondary_group}; }
  bool scales_dynamically() const;
  // The loss scaling that `loss_scale` and the related options describe.
  LossScaleSettings LossScaling() const;
  // One line of name=value words with all settings that must be equal on all ranks. Checkpoints store it and
  // compare it by name (checkpoint/resume_check.h).
  std::string Canonical() const;
};

// Returns an error, with the option and a hint, for settings that are invalid whatever the world size and
// text.
Status Validate(const TrainingSettings& settings);
// Returns an error for settings that do not suit this number of ranks or this text.
Status ValidateForRun(const TrainingSettings& settings, int world, const TextDataset& text);

}  // namespace dynamiccl::zero
