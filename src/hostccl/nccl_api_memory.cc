// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions for memory: allocation, registration, windows, statistics. See memory_api.h and
// src/transport/shared_buffer.h.
#include "src/hostccl/api_call.h"
#include "src/hostccl/memory_api.h"
#include "src/hostccl/nccl_export.h"
#include "src/transport/shared_buffer.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

HOSTCCL_WEAK(MemAlloc)
HOSTCCL_WEAK(MemFree)
HOSTCCL_WEAK(CommRegister)
HOSTCCL_WEAK(CommDeregister)
HOSTCCL_WEAK(CommWindowRegister)
HOSTCCL_WEAK(CommWindowDeregister)
HOSTCCL_WEAK(WinGetUserPtr)
HOSTCCL_WEAK(CommMemStats)

// Allocates memory that the other ranks of the host can map, which saves copies.
ncclResult_t pncclMemAlloc(void** ptr, size_t size) {
  if (ptr == nullptr || size == 0) {
    return Refuse(Error{ErrorKind::kInvalidArgument, "ncclMemAlloc: a null place, or 0 bytes", {}});
  }
  const auto allocated = AllocateSharedBuffer(size);
  if (!allocated) return Refuse(allocated.error());
  *ptr = *allocated;
  return ncclSuccess;
}

ncclResult_t pncclMemFree(void* ptr) {
  if (ptr == nullptr) return ncclSuccess;
  const Status freed = FreeSharedBuffer(ptr);
  return freed ? ncclSuccess : Refuse(freed.error());
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return RegisterBuffer(comm, buff, size, handle);
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle) {
  return DeregisterBuffer(comm, handle);
}

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                     int winFlags) {
  return RegisterWindow(comm, buff, size, win, winFlags);
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return DeregisterWindow(comm, win);
}

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return WindowAddress(comm, win, outUserPtr);
}

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return MemoryStatistic(comm, stat, value);
}
