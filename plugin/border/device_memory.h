// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA driver that the process has already loaded how much memory a device has left.
#pragma once

#include "src/base/host_memory.h"

namespace dynamiccl {

// Returns the memory of the device of the calling thread's context. A total of 0: there is no driver, or the
// thread has no context. Makes no context, and spoils no graph capture of any thread.
MemorySizes DeviceMemory() noexcept;

}  // namespace dynamiccl
