// SPDX-License-Identifier: Apache-2.0
// Memory that peers read directly, and buffers that programs register. The functions return the results of
// the C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Notes a buffer of this rank. The only effect is that Deregister accepts the handle.
ncclResult_t RegisterBuffer(ncclComm_t comm, void* buffer, size_t bytes, void** handle);
// Removes a buffer; ncclInvalidArgument for a handle that RegisterBuffer did not return.
ncclResult_t DeregisterBuffer(ncclComm_t comm, void* handle);

// Collective: every rank of the communicator registers a buffer; sizes may differ, flags may not. The work is
// deferred to the end of a group, which then writes *window.
ncclResult_t RegisterWindow(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window, int flags);
// Removes a window on this rank. Null is accepted; ncclInvalidArgument for another communicator's window.
ncclResult_t DeregisterWindow(ncclComm_t comm, ncclWindow_t window);
// Returns the address that was registered.
ncclResult_t WindowAddress(ncclComm_t comm, ncclWindow_t window, void** address);

// Returns the bytes that the communicator holds; see the .cc for the meaning of the statistics.
ncclResult_t MemoryStatistic(ncclComm_t comm, ncclCommMemStat_t statistic, uint64_t* value);

}  // namespace dynamiccl::hostccl
