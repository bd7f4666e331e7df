// SPDX-License-Identifier: Apache-2.0
// Implements `train` --preset: the shape of a known model, and whether the model can be trained on this
// machine.
#pragma once

#include <functional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/estimate/memory_estimate.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Returns the settings of an estimate of this training run: the model's shape, types, buckets, units, and
// sums over micro-steps. The numbers of ranks, the batch of a rank and the checkpoints are not set.
EstimateSettings EstimateSettingsOf(const TrainingSettings& settings);

// Sets the preset's values for options that the user has not `given`: the model's shape, the tensor-parallel
// degree, and a batch with the preset's number of sequences for each data rank. The vocabulary stays that of
// bytes. An empty name changes nothing.
Status TakeModelPreset(const std::string& name, const std::function<bool(const char* option)>& given,
                       int world, TrainingSettings* settings);

// Refuses a preset whose estimate (estimate/memory_estimate.h) exceeds the available memory. For each rank
// this is --memory-cap or the device's memory. Without either, the host's available memory must suffice for
// all ranks of this machine. `available_bytes` is the host's available memory; with -1 (unknown), this last
// check is left out.
Status CheckPresetFits(const std::string& name, const TrainingSettings& settings, int world, int ranks_here,
                       int64_t available_bytes);

// The memory that this process may still take from the host (src/base/host_memory.h); -1 if it is unknown.
int64_t AvailableHostBytes();
// The number of ranks that the launcher started on this machine, if it set a variable with the number
// (LOCAL_WORLD_SIZE, ...); else `world`.
int RanksOnThisMachine(int world);

}  // namespace dynamiccl::zero
