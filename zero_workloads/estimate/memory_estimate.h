// SPDX-License-Identifier: Apache-2.0
// What a training run would take of each rank's memory, by ZeRO stage, before anything is started.
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

struct EstimateSettings {
  double parameters = 0;                  // 0: of the shape
  std::optional<TransformerShape> shape;  // without it nothing is known of activations and units
  std::string dtype = "bf16";
  int64_t ranks = 8;  // data-parallel
  int64_t tensor_parallel = 1;
  int64_t batch = 1;  // sequences of a rank
  Checkpoints checkpoints = Checkpoints::kEveryBlock;
  double activations_of_block = kActivationsOfBlock;  // in inputs of the block
  double bucket_bytes = 4 << 20;                      // 0: one fused fp32 buffer for all gradients
  double device_bytes = 0;                            // 0: not asked
};

// Bytes.
struct StageEstimate {
  ModelStates states;
  double buffers = 0;   // two buckets: one fills while the other is summed
  double gathered = 0;  // stage 3: units whose parameters are there at once
  double activations = 0;
  double on_host = 0;  // checkpoints that were moved there
  double sent = 0;     // by data parallelism in a step of one micro-step; not memory

  double total() const { return states.total() + buffers + gathered + activations; }
};

// What makes no sense, with the option that says it.
Status Validate(const EstimateSettings& settings);

double ParametersOf(const EstimateSettings& settings);
std::array<StageEstimate, 4> EstimateOf(const EstimateSettings& settings);

// "7.5B", "128M", "1T", or a number: parameters.
Result<double> ParseParameters(const std::string& text);
// "none", "full", "partitioned", "partitioned_cpu": as --activation-checkpoints of training.
std::optional<Checkpoints> ParseCheckpoints(std::string_view name);
std::string_view Name(Checkpoints checkpoints);

}  // namespace dynamiccl::zero
