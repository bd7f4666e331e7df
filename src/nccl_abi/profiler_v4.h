// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin interface, version 4 (NCCL 2.27): symbol ncclProfiler_v4. Adds the communicator to
// init and time stamps of kernels; the real number of channels.
#pragma once

#include "src/nccl_abi/profiler_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint8_t type;     // one ncclProfile* bit: which member of the union counts
  void* parentObj;  // handle of the event that this one belongs to
  int rank;
  union {
    struct {
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
    } p2p;
    struct {
      pid_t pid;  // of the process that the proxy works for
      uint8_t channelId;
      int peer;
      int nSteps;
      int chunkSize;
      int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
    struct {
      uint8_t channelId;
      uint64_t pTimer;  // start, nanoseconds
    } kernelCh;
    struct {
      int64_t id;
      void* data;
    } netPlugin;
  };
} ncclProfilerEventDescr_v4_t;

typedef union {
  struct {
    size_t transSize;
  } proxyStep;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
  struct {
    void* data;
  } netPlugin;
  struct {
    uint64_t pTimer;  // stop, nanoseconds
  } kernelCh;
} ncclProfilerEventStateArgs_v4_t;

// The functions are called from several threads at once; handles are what startEvent gave, null for none.
typedef struct {
  const char* name;
  // As before, with what the communicator is; commName may be null.
  ncclResult_t (*init)(void** context, int* eActivationMask, const char* commName, uint64_t commHash,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v4_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v4_t* eStateArgs);
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v4_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclProfiler_v4_t) == 48, "ncclProfiler_v4_t layout");
static_assert(sizeof(ncclProfilerEventDescr_v4_t) == 104, "ncclProfilerEventDescr_v4_t layout");
static_assert(sizeof(ncclProfilerEventStateArgs_v4_t) == 8, "state layout");
static_assert(offsetof(ncclProfilerEventDescr_v4_t, coll.nChannels) == 80, "coll.nChannels");
static_assert(offsetof(ncclProfilerEventDescr_v4_t, coll.proto) == 96, "coll.proto");
static_assert(offsetof(ncclProfilerEventDescr_v4_t, p2p.peer) == 56, "p2p.peer");
static_assert(offsetof(ncclProfilerEventDescr_v4_t, kernelCh.pTimer) == 32, "kernelCh.pTimer");
#endif
