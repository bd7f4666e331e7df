// SPDX-License-Identifier: Apache-2.0
// A layer over whatever allocator LibTorch has for host memory, which books every block in memory_counters.h.
#pragma once

namespace dynamiccl::zero {

// Puts the layer over the present allocator, which stays in use below it for good. Called at most once,
// before other threads use tensors.
void CountHostAllocations();

}  // namespace dynamiccl::zero
