// SPDX-License-Identifier: Apache-2.0
// Whether a CUDA graph is being captured, asked of the driver that the process has loaded already.
#pragma once

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Of a stream of calls on a communicator. False without a CUDA driver, and over hostccl, whose streams are
// not CUDA's. Never loads a driver.
bool StreamIsCapturing(cudaStream_t stream) noexcept;

}  // namespace dynamiccl
