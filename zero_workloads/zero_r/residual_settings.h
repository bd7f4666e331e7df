// SPDX-License-Identifier: Apache-2.0
// The options of a training run that concern ZeRO-R: activation checkpoints, contiguous pools, and the
// configurations C1 to C5 of the ZeRO paper's Table 3, which combine ZeRO-DP and ZeRO-R.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/estimate/residual_memory.h"

namespace dynamiccl::zero {

// The value of --bucket-bytes all: one bucket holds the gradients of the whole model. Measurements compare
// buckets of constant size (the ZeRO paper's C_B) with it. The number exceeds any model but does not overflow
// in the arithmetic of buckets.
inline constexpr int64_t kOneBucketForAll = int64_t{1} << 59;

// Holds the settings as parsed from the command line or the settings file. Validate checks them.
struct ResidualSettings {
  // One of "none", "full", "partitioned", "partitioned_cpu" and "auto".
  std::string activation_checkpoints = "none";
  // If true, the backward pass gathers the next block's partitioned input while a block is computed again.
  bool activation_prefetch = true;
  // If true, gradients and checkpoints lie in contiguous pools (the ZeRO paper's M_D).
  bool contiguous_pools = false;
  // Name of one of the ZeRO paper's configurations C1 to C5. Empty means none of them.
  std::string config;
  // Bytes that the tensors of a rank may take. 0 means no limit except the machine's memory.
  int64_t memory_cap = 0;

  // Says how the capped memory is divided into blocks: first_fit or caching.
  std::string memory_allocator = "first_fit";

  // The parsed `activation_checkpoints`. Empty if it is "auto".
  std::optional<Checkpoints> checkpoints() const;
  // The settings that must be equal on all ranks, as text.
  std::string Canonical() const;
};

// Returns an error for unknown values, and for those that are impossible at this tensor-parallel degree.
Status Validate(const ResidualSettings& settings, int tensor_parallel);

// Applies the paper's configuration `residual->config`: sets the ZeRO-DP stage and the settings of ZeRO-R.
// `given` tells whether the user set an option explicitly. An explicit option that contradicts the
// configuration is an error.
Status TakePaperConfig(const std::function<bool(const char* option)>& given, int64_t bucket_bytes, int* stage,
                       ResidualSettings* residual);

}  // namespace dynamiccl::zero
