// SPDX-License-Identifier: Apache-2.0
// What a training run is told of ZeRO-R: activation checkpoints, contiguous pools, and the paper's
// configurations of both ZeRO-DP and ZeRO-R.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/estimate/residual_memory.h"

namespace dynamiccl::zero {

// --bucket-bytes all: one bucket that holds the gradients of the whole model, what C_B is measured against.
inline constexpr int64_t kOneBucketForAll = int64_t{1} << 59;

struct ResidualSettings {
  std::string activation_checkpoints = "none";  // none, full, partitioned, partitioned_cpu, auto
  bool contiguous_pools = false;                // M_D
  std::string config;                           // C1 to C5, or empty
  int64_t memory_cap = 0;  // bytes that the tensors of a rank may take; 0: what the machine has

  std::string memory_allocator = "first_fit";  // of the cap: first_fit, caching

  // Nothing where `activation_checkpoints` is auto.
  std::optional<Checkpoints> checkpoints() const;
  // What of it must be equal on all ranks.
  std::string Canonical() const;
};

// What makes no sense at this tensor-parallel degree.
Status Validate(const ResidualSettings& settings, int tensor_parallel);

// Sets what the configuration `residual->config` says: the ZeRO-DP stage and its part of ZeRO-R. `given`
// tells whether the user set an option himself; one that says something else is an error.
Status TakePaperConfig(const std::function<bool(const char* option)>& given, int64_t bucket_bytes, int* stage,
                       ResidualSettings* residual);

}  // namespace dynamiccl::zero
