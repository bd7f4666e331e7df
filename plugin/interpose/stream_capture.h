// SPDX-License-Identifier: Apache-2.0
// Asks the driver that the process has already loaded whether a CUDA graph is being captured.
#pragma once

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Returns true if calls on this stream are being captured. False without a CUDA driver, and over hostccl,
// whose streams are not CUDA streams. True if the driver cannot answer, so that nothing is timed. Never loads
// a driver. Any thread.
bool StreamIsCapturing(cudaStream_t stream) noexcept;

}  // namespace dynamiccl
