// SPDX-License-Identifier: Apache-2.0
// A layer over LibTorch's allocator of host memory that records every block in memory_counters.h. On CUDA the
// caching allocator reports its blocks by itself (device_cuda.cc).
#pragma once

namespace dynamiccl::zero {

// Installs the layer over the present allocator, which stays in use below it until the process ends. Call
// it at most once, after CapHostTensors and before other threads use tensors: blocks that were allocated
// earlier are not counted, and their release changes no counter.
void CountHostAllocations();

}  // namespace dynamiccl::zero
