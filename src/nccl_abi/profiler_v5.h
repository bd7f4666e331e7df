// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin interface, version 5 (NCCL 2.28): symbol ncclProfiler_v5. It adds the events of API
// calls and KernelLaunch; event types are 64 bits wide.
#pragma once

#include "src/nccl_abi/profiler_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Describes an event that begins. `type` is one ncclProfile* bit and says which member of the union holds the
// details; the member has the name of the event. The memory is NCCL's and valid during the call only.
typedef struct {
  uint64_t type;    // one ncclProfile* bit: which member of the union counts
  void* parentObj;  // handle of the event that this one belongs to
  int rank;
  union {
    struct {
      bool graphCaptured;
      int groupDepth;
    } groupApi;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool graphCaptured;
    } collApi;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool graphCaptured;
    } p2pApi;
    struct {
      void* stream;
    } kernelLaunch;
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
      void* parentGroup;  // the Group event
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
      void* parentGroup;  // the Group event
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
} ncclProfilerEventDescr_v5_t;

// Details of a change of an event's state. The member to use depends on the kind of event.
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
} ncclProfilerEventStateArgs_v5_t;

// The symbol holds 48 bytes: a name and five functions, which NCCL calls from several threads at once. An
// event handle is the one that startEvent set; null means that the plugin does not follow the event.
typedef struct {
  const char* name;
  // Called once per communicator and rank. The inputs describe the communicator; commName may be null. Sets
  // *context, and *eActivationMask to the kinds of events that the plugin wants. NCCL keeps the pointer to
  // the mask and reads the mask anew for every task, so the plugin may change it later. After an error the
  // communicator goes on without a profiler.
  ncclResult_t (*init)(void** context, uint64_t commId, int* eActivationMask, const char* commName,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  // Sets *eHandle to the plugin's own handle of the event. NCCL passes it to the two functions below, and as
  // parentObj of later events.
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v5_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v5_t* eStateArgs);
  // Called once when the communicator ends.
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v5_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclProfiler_v5_t) == 48, "ncclProfiler_v5_t layout");
static_assert(sizeof(ncclProfilerEventDescr_v5_t) == 112, "ncclProfilerEventDescr_v5_t layout");
static_assert(sizeof(ncclProfilerEventStateArgs_v5_t) == 8, "state layout");
static_assert(offsetof(ncclProfilerEventDescr_v5_t, coll.parentGroup) == 104, "coll.parentGroup");
static_assert(offsetof(ncclProfilerEventDescr_v5_t, collApi.graphCaptured) == 64, "collApi.graphCaptured");
static_assert(offsetof(ncclProfilerEventDescr_v5_t, p2p.peer) == 56, "p2p.peer");
static_assert(offsetof(ncclProfilerEventDescr_v5_t, kernelCh.pTimer) == 32, "kernelCh.pTimer");
#endif
