// SPDX-License-Identifier: Apache-2.0
// Types shared by all versions of NCCL's tuner plugin interface (src/include/plugin/nccl_tuner.h and
// nccl_common.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Levels of a line that a plugin hands to NCCL's logger.
typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

// Bits of NCCL_DEBUG_SUBSYS that a logger call may carry: a line is printed if the user enabled one of them.
#define NCCL_SUBSYS_INIT 0x1UL
#define NCCL_SUBSYS_COLL 0x2UL
#define NCCL_SUBSYS_NET 0x10UL
#define NCCL_SUBSYS_ENV 0x80UL
#define NCCL_SUBSYS_TUNING 0x40UL
#define NCCL_SUBSYS_ALL (~0UL)

// NCCL's logger as plugins receive it in init. `fmt` is that of printf, without a newline.
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                                  const char* fmt, ...);

// Collective operations. The underlying type is the one that compilers choose for NVIDIA's enum. Naming the
// type makes it defined to read a number that only a later release has.
#ifdef __cplusplus
typedef enum : unsigned int {
#else
typedef enum {
#endif
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
  ncclFuncSendRecv = 5,
  ncclFuncSend = 6,
  ncclFuncRecv = 7,
  ncclNumFuncs = 8
} ncclFunc_t;

// The dimensions of NCCL's cost table, and the indices of its entries that the tuner adapters need. All
// indices are in src/collective/algorithm.h.
#define NCCL_NUM_ALGORITHMS 7
#define NCCL_NUM_PROTOCOLS 3
#define NCCL_ALGO_COLLNET_CHAIN 3
#define NCCL_ALGO_NVLS 4
#define NCCL_ALGO_NVLS_TREE 5
#define NCCL_PROTO_SIMPLE 2
// Values that NCCL writes to *algorithm and *protocol before it calls a version 2 tuner.
#define NCCL_ALGO_UNDEF (-1)
#define NCCL_PROTO_UNDEF (-1)
// The cost of a pair that is impossible on the communicator. Never write it: up to 2.30 it disables an entry,
// from 2.31 on it forces that entry.
#define NCCL_ALGO_PROTO_IGNORE (-1.0f)

#ifdef __cplusplus
}
#endif
