// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin interface, version 3 (NCCL 2.26): symbol ncclProfiler_v3. It adds the events
// KernelCh and NetPlugin and drops trafficBytes.
#pragma once

#include "src/nccl_abi/profiler_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Describes an event that begins. `type` is one ncclProfile* bit and says which member of the union holds the
// details; the member has the name of the event. The memory is NCCL's and valid during the call only.
typedef struct {
  uint8_t type;     // one ncclProfile* bit: which member of the union counts
  void* parentObj;  // handle of the event that this one belongs to
  int rank;
  union {
    struct {
      const char* name;
      uint64_t commHash;
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* name;
      uint64_t commHash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
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
    } kernelCh;
    struct {
      int64_t id;
      void* data;
    } netPlugin;
  };
} ncclProfilerEventDescr_v3_t;

// Details of a change of an event's state. The member to use depends on the kind of event.
typedef union {
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
} ncclProfilerEventStateArgs_v3_t;

// The symbol holds 48 bytes: a name and five functions, which NCCL calls from several threads at once. An
// event handle is the one that startEvent set; null means that the plugin does not follow the event.
typedef struct {
  const char* name;
  // Called once per communicator and rank. Sets *context, and *eActivationMask to the kinds of events that
  // the plugin wants. NCCL keeps the pointer to the mask and reads the mask anew for every task, so the
  // plugin may change it later. After an error the communicator goes on without a profiler.
  ncclResult_t (*init)(void** context, int* eActivationMask);
  // Sets *eHandle to the plugin's own handle of the event. NCCL passes it to the two functions below, and as
  // parentObj of later events.
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v3_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v3_t* eStateArgs);
  // Called once when the communicator ends.
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v3_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclProfiler_v3_t) == 48, "ncclProfiler_v3_t layout");
static_assert(sizeof(ncclProfilerEventDescr_v3_t) == 120, "ncclProfilerEventDescr_v3_t layout");
static_assert(sizeof(ncclProfilerEventStateArgs_v3_t) == 16, "state layout");
static_assert(offsetof(ncclProfilerEventDescr_v3_t, coll.proto) == 112, "coll.proto");
static_assert(offsetof(ncclProfilerEventDescr_v3_t, p2p.peer) == 72, "p2p.peer");
static_assert(offsetof(ncclProfilerEventDescr_v3_t, kernelCh.channelId) == 24, "kernelCh.channelId");
#endif
