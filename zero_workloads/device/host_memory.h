// SPDX-License-Identifier: Apache-2.0
// Host memory as a second kind of memory beside the device's. On a GPU it is pinned memory. A run on CPUs
// also has such a second kind: memory that neither the device's counters nor --memory-cap see. Offloading to
// the host thus moves and frees as much as it would on a GPU.
//
// Tensors in host memory come from NewHostTensor (device.h). The functions may be called from any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {

// Tensors in host memory, and the copies between both kinds of memory since the process started. In bytes.
struct HostMemoryCounters {
  MemoryUse use;
  int64_t to_device_bytes = 0;
  int64_t to_host_bytes = 0;
};
HostMemoryCounters ReadHostMemoryCounters();

// True if the tensor's memory is the host's, not the device's.
bool LiesOnHost(const at::Tensor& tensor);
// Returns a copy of a host tensor in the memory of `device`. A tensor that does not lie on the host is
// returned as it is. CUDA queues the copy in the compute stream.
at::Tensor CopyToDevice(const at::Tensor& tensor, at::Device device);
// Copies a device tensor to a host tensor of the same shape. CUDA queues the copy in the compute stream.
void CopyToHost(const at::Tensor& tensor, const at::Tensor& host);

// The bytes of tensors in host memory. Each device has its own count (device_host.cc, device_cuda.cc).
MemoryUse HostMemoryUse();

}  // namespace dynamiccl::zero
