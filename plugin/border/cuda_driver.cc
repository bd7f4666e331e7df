// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/cuda_driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

#include "plugin/border/real_nccl.h"

namespace dynamiccl {
namespace {

// cuda.h: CUresult cuMemGetInfo_v2(size_t* free, size_t* total); 0 is success.
using MemGetInfo = int (*)(size_t* free, size_t* total);

// The type of cuStreamIsCapturing in cuda.h. It returns 0 for success, and sets `status` to 0 if nothing is
// captured.
using IsCapturing = int (*)(cudaStream_t stream, int* status);

IsCapturing FindInDriver() {
  if (RunsOverHostccl()) return nullptr;
  return reinterpret_cast<IsCapturing>(FindDriverFunction("cuStreamIsCapturing"));
}

}  // namespace

void* FindDriverFunction(const char* name) noexcept {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : ::dlsym(driver, name);
}

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

[[gnu::hot]] bool StreamIsCapturing(cudaStream_t stream) noexcept {
  // The process may load the driver after this function's first call, but not much later, because it already
  // has a communicator.
  static std::atomic<IsCapturing> found{nullptr};
  static std::atomic<int> looked{0};
  IsCapturing ask = found.load(std::memory_order_relaxed);
  if (ask == nullptr && looked.load(std::memory_order_relaxed) < kMaxDriverSearches) {
    looked.fetch_add(1, std::memory_order_relaxed);
    found.store(ask = FindInDriver(), std::memory_order_relaxed);
  }
  int status = 0;
  // If the driver gives no answer, the stream is treated as under capture, so nothing is timed.
  return ask != nullptr && (ask(stream, &status) != 0 || status != 0);
}

}  // namespace dynamiccl
