// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/device_memory.h"

#include <atomic>
#include <cstddef>

#include "plugin/border/cuda_driver.h"

namespace dynamiccl {
namespace {

// cuda.h: CUresult cuMemGetInfo_v2(size_t* free, size_t* total); 0 is success.
using MemGetInfo = int (*)(size_t* free, size_t* total);

}  // namespace

MemorySizes DeviceMemory() noexcept {
  static std::atomic<int> looked{0};
  static std::atomic<MemGetInfo> found_ask{nullptr};
  static std::atomic<RelaxedCapture::ExchangeMode> found_exchange{nullptr};
  if (found_ask.load() == nullptr && looked.fetch_add(1) < kMostLooksForDriver) {
    found_exchange.store(
        reinterpret_cast<RelaxedCapture::ExchangeMode>(InCudaDriver("cuThreadExchangeStreamCaptureMode")));
    found_ask.store(reinterpret_cast<MemGetInfo>(InCudaDriver("cuMemGetInfo_v2")));
  }
  const MemGetInfo ask = found_ask.load();
  const RelaxedCapture::ExchangeMode exchange = found_exchange.load();
  if (ask == nullptr || exchange == nullptr) return {};
  const RelaxedCapture relaxed(exchange);
  size_t free_bytes = 0, total_bytes = 0;
  if (ask(&free_bytes, &total_bytes) != 0) return {};
  return {free_bytes, total_bytes};
}

}  // namespace dynamiccl
