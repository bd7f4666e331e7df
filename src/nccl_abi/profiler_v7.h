// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin interface, version 7 (NCCL 2.31 and later): symbol ncclProfiler_v7. It adds user
// tags, kernel variants and the event KernelPhase.
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
      uint64_t userTag;  // of ncclCollConfig_t; 0: none
    } collApi;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool graphCaptured;
      uint64_t userTag;  // of ncclCollConfig_t; 0: none
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
      const char* kernelVariant;
      bool isSymColl;
      uint64_t userTag;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
      void* parentGroup;  // the Group event
      uint64_t userTag;
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
    struct {
      uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      const char* syncStrategy;
      bool intraBatchSync;
      uint32_t batchSize;
      uint32_t numBatches;
      uint32_t ceSeqNum;
      void* stream;
      uint64_t userTag;
    } ceColl;
    struct {
      bool isComplete;
      int nRanks;
    } ceCollSync;
    struct {
      int numOps;
      size_t totalBytes;
      bool useIntraSync;
    } ceCollBatch;
    struct {
      uint8_t channelId;
      uint8_t phaseId;  // 0 initial_sync, 1 compute, 2 final_sync
      const char* phaseName;
      uint64_t pTimer;  // start, nanoseconds
    } kernelPhase;
  };
} ncclProfilerEventDescr_v7_t;

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
    uint64_t pTimer;  // stop, nanoseconds; of a KernelPhase too
  } kernelCh;
} ncclProfilerEventStateArgs_v7_t;

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
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v7_t* eDescr);
  ncclResult_t (*stopEvent)(void* eHandle);
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v7_t* eStateArgs);
  // Called once when the communicator ends.
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v7_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclProfiler_v7_t) == 48, "ncclProfiler_v7_t layout");
static_assert(sizeof(ncclProfilerEventDescr_v7_t) == 136, "ncclProfilerEventDescr_v7_t layout");
static_assert(sizeof(ncclProfilerEventStateArgs_v7_t) == 8, "state layout");
static_assert(offsetof(ncclProfilerEventDescr_v7_t, coll.isSymColl) == 120, "coll.isSymColl");
static_assert(offsetof(ncclProfilerEventDescr_v7_t, coll.userTag) == 128, "coll.userTag");
static_assert(offsetof(ncclProfilerEventDescr_v7_t, p2p.userTag) == 72, "p2p.userTag");
static_assert(offsetof(ncclProfilerEventDescr_v7_t, ceColl.userTag) == 112, "ceColl.userTag");
static_assert(offsetof(ncclProfilerEventDescr_v7_t, kernelPhase.pTimer) == 40, "kernelPhase.pTimer");
#endif
