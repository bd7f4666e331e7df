// SPDX-License-Identifier: Apache-2.0
// Types shared by all versions of NCCL's profiler plugin interface (src/include/plugin/nccl_profiler.h).
//
// NCCL calls startEvent with a descriptor when something begins, recordEventState when its state changes, and
// stopEvent when it ends. Events form a tree by their parent handles: a Group holds collectives (Coll) and
// point-to-point operations (P2p); each of these holds its kernels on the channels (KernelCh) and its network
// operations (ProxyOp, ProxyStep, NetPlugin).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Kinds of events. In the activation mask the bits say which kinds the plugin wants; in a descriptor one bit
// says which kind it is.
enum {
  ncclProfileGroup = 1 << 0,
  ncclProfileColl = 1 << 1,
  ncclProfileP2p = 1 << 2,
  ncclProfileProxyOp = 1 << 3,
  ncclProfileProxyStep = 1 << 4,
  ncclProfileProxyCtrl = 1 << 5,
  ncclProfileKernelCh = 1 << 6,
  ncclProfileNetPlugin = 1 << 7,
  ncclProfileGroupApi = 1 << 8,       // from version 5
  ncclProfileCollApi = 1 << 9,        // from version 5
  ncclProfileP2pApi = 1 << 10,        // from version 5
  ncclProfileKernelLaunch = 1 << 11,  // from version 5
  ncclProfileCeColl = 1 << 12,        // from version 6
  ncclProfileCeSync = 1 << 13,        // from version 6
  ncclProfileCeBatch = 1 << 14,       // from version 6
  ncclProfileKernelPhase = 1 << 15    // from version 7
};

// Changes of state that recordEventState reports. Only those that hostccl sends are named; the numbers are
// NCCL's.
typedef enum {
  ncclProfilerKernelChStop = 22,
  ncclProfilerGroupStartApiStop = 23,
  ncclProfilerGroupEndApiStart = 24,
  ncclProfilerKernelPhaseStop = 31
} ncclProfilerEventState_t;

#ifdef __cplusplus
}
#endif
