// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA driver that the process has already loaded. Never loads a driver.
#pragma once

#include "src/base/host_memory.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// The process is searched for a driver at most this many times. Each search without a driver takes
// microseconds, and a process that has made so many calls without a driver will not load one later.
inline constexpr int kMaxDriverSearches = 64;

// Returns the driver's function of this name (cuda.h declares it); null without a driver, or if the driver
// does not have it. Any thread.
void* FindDriverFunction(const char* name) noexcept;

// Puts the calling thread into relaxed mode for the lifetime of the object. While any thread of the process
// captures a graph in CUDA's default mode, some driver calls would spoil the capture, unless the thread that
// makes them is in relaxed mode.
class RelaxedCapture {
 public:
  // cuThreadExchangeStreamCaptureMode, as FindDriverFunction found it.
  using ExchangeMode = int (*)(int* mode);

  explicit RelaxedCapture(ExchangeMode exchange) : exchange_(exchange) { (void)exchange_(&mode_); }
  ~RelaxedCapture() { (void)exchange_(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const ExchangeMode exchange_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED of cuda.h: the mode that forbids nothing
};

// Returns the memory of the device of the calling thread's context. A total of 0 means that there is no
// driver or that the thread has no context. Makes no context, and spoils no graph capture of any thread.
MemorySizes DeviceMemory() noexcept;

// Returns true if calls on this stream are being captured. False without a CUDA driver, and over hostccl,
// whose streams are not CUDA streams. True if the driver cannot answer, so that nothing is timed. Any thread.
bool StreamIsCapturing(cudaStream_t stream) noexcept;

}  // namespace dynamiccl
