// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/stream_capture.h"

#include <atomic>

#include "plugin/border/cuda_driver.h"
#include "plugin/border/real_nccl.h"

namespace dynamiccl {
namespace {

// The type of cuStreamIsCapturing in cuda.h. It returns 0 for success, and sets `status` to 0 if nothing is
// captured.
using IsCapturing = int (*)(cudaStream_t stream, int* status);

IsCapturing FindInDriver() {
  if (RunsOverHostccl()) return nullptr;
  return reinterpret_cast<IsCapturing>(FindDriverFunction("cuStreamIsCapturing"));
}

}  // namespace

[[gnu::hot]] bool StreamIsCapturing(cudaStream_t stream) noexcept {
  // The driver may be loaded after the first question, but not much later, because the process already has a
  // communicator.
  static std::atomic<IsCapturing> found{nullptr};
  static std::atomic<int> looked{0};
  IsCapturing ask = found.load(std::memory_order_relaxed);
  if (ask == nullptr && looked.load(std::memory_order_relaxed) < kMaxDriverSearches) {
    looked.fetch_add(1, std::memory_order_relaxed);
    found.store(ask = FindInDriver(), std::memory_order_relaxed);
  }
  int status = 0;
  // If the driver gives no answer, the stream counts as capturing, so nothing is timed.
  return ask != nullptr && (ask(stream, &status) != 0 || status != 0);
}

}  // namespace dynamiccl
