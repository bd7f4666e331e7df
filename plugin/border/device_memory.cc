// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/device_memory.h"

#include <cstddef>

#include "plugin/border/cuda_driver.h"

namespace dynamiccl {
namespace {

// cuda.h: CUresult cuMemGetInfo_v2(size_t* free, size_t* total); 0 is success.
using MemGetInfo = int (*)(size_t* free, size_t* total);

}  // namespace

// Looks the functions up each time: samples are a second apart.
MemorySizes DeviceMemory() noexcept {
  const auto ask = reinterpret_cast<MemGetInfo>(FindDriverFunction("cuMemGetInfo_v2"));
  const auto exchange =
      reinterpret_cast<RelaxedCapture::ExchangeMode>(FindDriverFunction("cuThreadExchangeStreamCaptureMode"));
  if (ask == nullptr || exchange == nullptr) return {};
  const RelaxedCapture relaxed(exchange);
  size_t free_bytes = 0, total_bytes = 0;
  if (ask(&free_bytes, &total_bytes) != 0) return {};
  return {free_bytes, total_bytes};
}

}  // namespace dynamiccl
