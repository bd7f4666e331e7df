// SPDX-License-Identifier: Apache-2.0
// Memory that peers read directly, and buffers that programs register. The functions return the results of
// NCCL's C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Registers a buffer on this rank. The only effect is that DeregisterBuffer accepts the handle.
ncclResult_t RegisterBuffer(ncclComm_t comm, void* buffer, size_t bytes, void** handle);
// Removes a buffer. Returns ncclInvalidArgument for a handle that RegisterBuffer did not return.
ncclResult_t DeregisterBuffer(ncclComm_t comm, void* handle);

// Collective: every rank of the communicator registers a buffer. Sizes may differ between ranks, flags may
// not. The work is done at the end of the group, which then writes *window.
ncclResult_t RegisterWindow(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window, int flags);
// Removes a window on this rank. Null is accepted. Returns ncclInvalidArgument for another communicator's
// window.
ncclResult_t DeregisterWindow(ncclComm_t comm, ncclWindow_t window);
// Returns the address with which the window was registered.
ncclResult_t WindowAddress(ncclComm_t comm, ncclWindow_t window, void** address);

// Returns the bytes of memory that the communicator holds. memory_api.cc explains the statistics.
ncclResult_t MemoryStatistic(ncclComm_t comm, ncclCommMemStat_t statistic, uint64_t* value);

}  // namespace dynamiccl::hostccl
