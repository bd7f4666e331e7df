// SPDX-License-Identifier: Apache-2.0
// Copies between the two kinds of memory, and their counters.
#include "zero_workloads/device/host_memory.h"

#include <ATen/ops/empty.h>

#include <atomic>

namespace dynamiccl::zero {
namespace {

std::atomic<int64_t> to_device_bytes = 0;
std::atomic<int64_t> to_host_bytes = 0;

}  // namespace

HostMemoryCounters ReadHostMemoryCounters() {
  return {HostMemoryUse(), to_device_bytes, to_host_bytes};
}

at::Tensor CopyToDevice(const at::Tensor& tensor, at::Device device) {
  if (!LiesOnHost(tensor)) return tensor;
  to_device_bytes += static_cast<int64_t>(tensor.nbytes());
  return at::empty(tensor.sizes(), tensor.options().device(device)).copy_(tensor, /*non_blocking=*/true);
}

void CopyToHost(const at::Tensor& tensor, const at::Tensor& host) {
  to_host_bytes += static_cast<int64_t>(tensor.nbytes());
  host.copy_(tensor, /*non_blocking=*/true);
}

}  // namespace dynamiccl::zero
