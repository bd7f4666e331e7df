// SPDX-License-Identifier: Apache-2.0
// --preset of training: a known model's shape, and whether it can be trained here.
#pragma once

#include <functional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

// Sets what the preset says and no option was `given` for: the model's shape, the tensor-parallel degree, and
// the batch, of as many sequences a data rank as the preset has. The vocabulary stays that of bytes. An empty
// name changes nothing.
Status TakeModelPreset(const std::string& name, const std::function<bool(const char* option)>& given,
                       int world, TrainingSettings* settings);

// Refuses a preset whose estimate (estimate/memory_estimate.h) is more than there is for the ranks of this
// machine: --memory-cap or the device's memory for each, or the host's available memory for all of them.
// Asks `available_bytes` of the host, -1 where it is not known: then nothing is refused.
Status CheckPresetFits(const std::string& name, const TrainingSettings& settings, int world, int ranks_here,
                       int64_t available_bytes);

// Of the host, for new allocations without swapping; -1 where it is not known.
int64_t AvailableHostBytes();
// The ranks that the launcher started on this machine, where it says so (LOCAL_WORLD_SIZE); else `world`.
int RanksOnThisMachine(int world);

}  // namespace dynamiccl::zero
