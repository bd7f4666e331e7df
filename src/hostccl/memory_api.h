// SPDX-License-Identifier: Apache-2.0
// Memory that peers read directly, and what programs register.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// This rank's own note of a buffer: changes nothing but what Deregister accepts.
ncclResult_t RegisterBuffer(ncclComm_t comm, void* buffer, size_t bytes, void** handle);
ncclResult_t DeregisterBuffer(ncclComm_t comm, void* handle);

// Collective: all ranks of the communicator register a buffer each, of sizes that may differ. Deferred to the
// end of a group; *window is written then.
ncclResult_t RegisterWindow(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window, int flags);
ncclResult_t DeregisterWindow(ncclComm_t comm, ncclWindow_t window);
ncclResult_t WindowAddress(ncclComm_t comm, ncclWindow_t window, void** address);

ncclResult_t MemoryStatistic(ncclComm_t comm, ncclCommMemStat_t statistic, uint64_t* value);

}  // namespace dynamiccl::hostccl
