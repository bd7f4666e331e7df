// SPDX-License-Identifier: Apache-2.0
// Estimates how much memory a training run takes on each rank, by ZeRO stage, before anything is started:
// model states (model_states.h), buffers, gathered parameters and activations (residual_memory.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "zero_workloads/estimate/model_states.h"
#include "zero_workloads/estimate/residual_memory.h"

namespace dynamiccl::zero {

// The run to estimate; Validate checks it.
struct EstimateSettings {
  // The number of parameters. 0 means that it follows from `shape`.
  double parameters = 0;
  // The shape of the model. Without a shape, activations and units cannot be estimated.
  std::optional<TransformerShape> shape;
  // "fp32", "bf16" or "fp16". With bf16 and fp16, the optimizer keeps fp32 master weights.
  std::string dtype = "bf16";
  // Bytes of optimizer states for one parameter, with fp32 master weights: the ZeRO paper's K. Without a
  // value it is Adam's: 12, or 8 with fp32, where the parameters are the master weights.
  std::optional<double> optimizer_bytes;
  // Type in which gradients are kept and summed over ranks: "model" (as `dtype`) or "fp32".
  std::string gradient_type = "model";
  // Type of the sums of gradients over micro-steps, "model" or "fp32". "none": there is one micro-step.
  std::string accumulation_type = "none";
  // Where the sums of gradients over micro-steps lie. "in_place": in place of the gradients, each of which is
  // freed when it has been added. "local" and "sharded": beside the gradients, as in the trainer
  // (docs/zero_memory.md). With "local", every rank has the sums of all parameters. With "sharded", a rank in
  // stages 2 and 3 has only its shard of the sums, always in fp32; in stages 0 and 1 "sharded" equals
  // "local".
  std::string accumulation = "in_place";
  // Bytes of gradients for one parameter, divided by 4. If set, the memory follows from it and not from the
  // two types above.
  std::optional<double> alpha;
  // Number of data-parallel ranks.
  int64_t ranks = 8;
  int64_t tensor_parallel = 1;
  // Number of sequences that one rank computes at a time.
  int64_t batch = 1;
  Checkpoints checkpoints = Checkpoints::kEveryBlock;
  // Numbers that a block keeps for its backward pass, as a multiple of the numbers in its input.
  double activations_of_block = kActivationsOfBlock;
  // Bytes of a gradient bucket. 0 means one fused fp32 buffer for all gradients.
  double bucket_bytes = 4 << 20;
  // Number of units that stage 3 gathers ahead of the one that computes.
  int64_t units_ahead = 1;
  // Number of blocks in a unit; 0.5 for halves of blocks.
  double blocks_in_unit = 1;
  // Memory of a device in bytes, to report which stages fit. 0 means that this is not reported.
  double device_bytes = 0;
  // Tokens to train on, and the operations per second that each rank reaches. 0 means that the time to train
  // is not reported.
  double tokens = 0;
  double operations_a_second = 0;
};

// Bytes on one rank at one stage.
struct StageEstimate {
  ModelStates states;
  // Bytes of two gradient buckets: one is filled while the other is summed.
  double buffers = 0;
  // In stage 3, the bytes of the units whose full parameters are in memory at once.
  double gathered = 0;
  double activations = 0;
  // Bytes of activation checkpoints that were moved to host memory. They are not included in total().
  double on_host = 0;
  // Bytes that data parallelism sends in a step of one micro-step. This is traffic, not memory.
  double sent = 0;

  double total() const { return states.total() + buffers + gathered + activations; }
};

// Returns an error, with the option, for settings that contradict each other or are out of range.
Status Validate(const EstimateSettings& settings);

// The number of parameters of the whole model.
double ParametersOf(const EstimateSettings& settings);
// Bytes of each kind of state for one parameter.
StateBytes BytesOf(const EstimateSettings& settings);
// Seconds until all ranks together have computed the forward and backward passes of all tokens
// (training_time.h). `tokens` and `operations_a_second` must be positive.
double TrainingSecondsOf(const EstimateSettings& settings);
// One estimate for each of the stages 0 to 3. The settings must be valid.
std::array<StageEstimate, 4> EstimateOf(const EstimateSettings& settings);

// Parses a number of parameters, or of the things that `what` names in errors: "7.5B", "128M", "1T", or a
// plain number. K, M, B and T are powers of 1000.
Result<double> ParseParameters(const std::string& text, std::string_view what = "parameters");
// Parses "none", "full", "partitioned" or "partitioned_cpu", as in --activation-checkpoints. The result is
// empty for other names.
std::optional<Checkpoints> ParseCheckpoints(std::string_view name);
// The name that ParseCheckpoints accepts.
std::string_view Name(Checkpoints checkpoints);

}  // namespace dynamiccl::zero
