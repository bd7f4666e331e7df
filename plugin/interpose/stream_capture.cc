// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/stream_capture.h"

#include <dlfcn.h>

#include <atomic>

namespace dynamiccl {
namespace {

// cuda.h: CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus*); 0 is success, and "none".
using IsCapturing = int (*)(cudaStream_t stream, int* status);

// A driver is searched at most this many times. Each search without a driver takes microseconds, and a
// process that has made so many calls without a driver will not load one later.
constexpr int kMaxLooks = 64;

IsCapturing FindInDriver() {
  if (::dlsym(RTLD_DEFAULT, "hostcclStreamCreate") != nullptr) return nullptr;
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<IsCapturing>(::dlsym(driver, "cuStreamIsCapturing"));
}

}  // namespace

[[gnu::hot]] bool StreamIsCapturing(cudaStream_t stream) noexcept {
  // The driver may be loaded after the first question, but not much later, because the process already has a
  // communicator.
  static std::atomic<IsCapturing> found{nullptr};
  static std::atomic<int> looked{0};
  IsCapturing ask = found.load(std::memory_order_relaxed);
  if (ask == nullptr && looked.load(std::memory_order_relaxed) < kMaxLooks) {
    looked.fetch_add(1, std::memory_order_relaxed);
    found.store(ask = FindInDriver(), std::memory_order_relaxed);
  }
  int status = 0;
  // If the driver gives no answer, the stream counts as capturing, so nothing is timed.
  return ask != nullptr && (ask(stream, &status) != 0 || status != 0);
}

}  // namespace dynamiccl
