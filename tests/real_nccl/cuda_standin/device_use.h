// SPDX-License-Identifier: Apache-2.0
// Device memory that NCCL holds on each emulated GPU. A program's own buffers (cuda_standin_allocate) and
// memory of other processes do not count.
#pragma once

#include <cstdint>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {

// Adds to what NCCL holds; negative bytes are given back. Thread-safe.
void CountDeviceMemory(const Place& gpu, int64_t bytes);

// Returns the most bytes that NCCL held at once so far.
uint64_t MostDeviceMemory(const Place& gpu);

}  // namespace cuda_standin
