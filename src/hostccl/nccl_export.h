// SPDX-License-Identifier: Apache-2.0
// Says how hostccl defines NCCL's C functions. As in NVIDIA's library, each function is a strong symbol
// pncclX with a weak alias ncclX. So a preloaded library may define ncclX and forward to pncclX.
//
//   HOSTCCL_WEAK(AllReduce)                               // ncclAllReduce = pncclAllReduce
//   ncclResult_t pncclAllReduce(const void* sendbuff, ...) { ... }
#pragma once

#pragma GCC visibility push(default)
#include "src/nccl_abi/nccl_api.h"
extern "C" {
#define HOSTCCL_STRONG(since, door, result, name, parameters, arguments) result pnccl##name parameters;
DYNAMICCL_NCCL_FUNCTIONS(HOSTCCL_STRONG)
DYNAMICCL_NCCL_FURTHER_FUNCTIONS(HOSTCCL_STRONG)
#undef HOSTCCL_STRONG
}
#pragma GCC visibility pop

// Exports ncclX as a weak alias of pncclX. Use it once for each function, in the file that defines pncclX.
#define HOSTCCL_WEAK(name) \
  extern "C"               \
      __attribute__((weak, alias("pnccl" #name), visibility("default"))) decltype(nccl##name) nccl##name;
