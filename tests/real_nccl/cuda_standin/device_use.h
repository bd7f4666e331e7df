// SPDX-License-Identifier: Apache-2.0
// Counts the device memory that NCCL holds on each emulated GPU. Buffers of cuda_standin_allocate and memory
// of other processes do not count.
#pragma once

#include <cstdint>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {

// Adds `bytes` to the memory that NCCL holds on `gpu`. A negative number means that NCCL freed memory.
// Thread-safe.
void CountDeviceMemory(const Place& gpu, int64_t bytes);

// Returns the largest number of bytes that NCCL has held at once on `gpu`. Thread-safe.
uint64_t MostDeviceMemory(const Place& gpu);

}  // namespace cuda_standin
