// SPDX-License-Identifier: Apache-2.0
// Whether a CUDA graph is being captured, asked of the driver that the process has loaded already.
#pragma once

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Whether calls on this stream are being captured. False without a CUDA driver, and over hostccl, whose
// streams are not CUDA's. True where the driver cannot say: then nothing is timed. Never loads a driver. Any
// thread.
bool StreamIsCapturing(cudaStream_t stream) noexcept;

}  // namespace dynamiccl
