// SPDX-License-Identifier: Apache-2.0
// NCCL's C API as hostccl offers it and as the interposer forwards it, declared without any CUDA header.
// Names, values and layouts are NCCL's (nccl.h 2.32.3): code compiled against this header runs on NVIDIA's
// library and on hostccl. tests/src/nccl_abi compares it with NVIDIA's nccl.h where a wheel of NCCL can be
// had. For the meaning of each function see NCCL's documentation; docs/hostccl.md says how hostccl implements
// it.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "src/nccl_abi/nccl_function_list.h"

#ifdef __cplusplus
extern "C" {
#endif

// CUDA's opaque handles (driver_types.h).
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;

// Opaque handles of the library: a communicator, a registered window, a parameter.
typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct ncclParamHandle* ncclParamHandle_t;
#define NCCL_COMM_NULL NULL

// The unique id, which all ranks of a new communicator must share. NCCL uses the first bytes; the interposer
// writes a control address and a secret into bytes 64 to 127 (docs/agreement.md).
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

// Results of every function. ncclInProgress is not an error: a non-blocking communicator is not ready yet.
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,  // 2.32
  ncclNumResults = 9
} ncclResult_t;

// This enum only gives the enum below its width, as in NCCL.
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  // Widens the enum to int, as NCCL does, so that operators made by a program fit.
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

// The memory in which the scalar of a user-made operator lies.
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

// Selects the memory that ncclCommMemStats reports.
typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

// Means "not set" in configurations; the library then uses its default.
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
// Values of a structure's first words, by which the library detects a structure that was not initialised.
#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_SIM_INFO_MAGIC 0x74685283
// The release whose structures this header declares; the structures state it in their `version` member. What
// ncclGetVersion reports is another number (src/hostccl/emulated_release.h).
#define DYNAMICCL_NCCL_API_VERSION 23203

// The structures carry NVIDIA's tags, which name the release that last changed them. Every structure only
// grows at its end, so a library must touch at most `size` bytes of a structure that a program passes.
//
// ncclConfig_t configures a communicator when it is made.
typedef struct ncclConfig_v23100 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode;
} ncclConfig_t;

// NCCL's NCCL_CONFIG_INITIALIZER: sets every member to "not set".
#define DYNAMICCL_NCCL_CONFIG_INITIALIZER                                                           \
  {                                                                                                 \
    sizeof(ncclConfig_t), NCCL_API_MAGIC, DYNAMICCL_NCCL_API_VERSION, NCCL_CONFIG_UNDEF_INT,        \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                                \
  }

// A list of vendor-specific options to which an ncclCollConfig_t points.
typedef struct ncclConfigExt {
  struct ncclConfigExt* next;
  struct {
    int vendorId;
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

// Configures one call of the functions *Config (2.31 and later). algSelection names what the user pins.
typedef struct ncclCollConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection;
  int CTAPolicy;
  uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER                                                      \
  {                                                                                                 \
    sizeof(ncclCollConfig_t), NCCL_API_MAGIC, DYNAMICCL_NCCL_API_VERSION, NCCL_CONFIG_UNDEF_PTR,    \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_PTR, 1, NCCL_CONFIG_UNDEF_INT, 0, NCCL_CONFIG_UNDEF_PTR                   \
  }

// ncclGroupSimulateEnd fills this.
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;  // microseconds
} ncclSimInfo_t;

#define DYNAMICCL_NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC, DYNAMICCL_NCCL_API_VERSION, NCCL_UNDEF_FLOAT }

// One entry of ncclWaitSignal: how many signals of which peer to wait for.
typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;
// The argument of ncclSetEncryption (2.32).
typedef struct ncclEncryptionConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
} ncclEncryptionConfig_t;

#define DYNAMICCL_NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                       \
  {                                                                                                        \
    sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, DYNAMICCL_NCCL_API_VERSION, NCCL_ENCRYPTION_MODE_NONE, \
        NCCL_CONFIG_UNDEF_PTR                                                                              \
  }

// Declares all functions as nccl<Name>(...), for example ncclAllReduce.
#define DYNAMICCL_NCCL_DECLARE(since, door, result, name, parameters, arguments) result nccl##name parameters;
DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_NCCL_DECLARE)
DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_NCCL_DECLARE)
#undef DYNAMICCL_NCCL_DECLARE

#ifdef __cplusplus
}

static_assert(sizeof(ncclUniqueId) == 128, "ncclUniqueId is 128 bytes in every release");
static_assert(sizeof(ncclRedOp_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclResult_t) == 4,
              "enums are int");
static_assert(offsetof(ncclConfig_t, netName) == 32 && offsetof(ncclConfig_t, commName) == 48 &&
                  offsetof(ncclConfig_t, graphUsageMode) == 80 && sizeof(ncclConfig_t) == 120,
              "ncclConfig_t layout");
static_assert(sizeof(ncclCollConfig_t) == 72 && offsetof(ncclCollConfig_t, algSelection) == 40,
              "ncclCollConfig_t layout");
static_assert(sizeof(ncclSimInfo_t) == 24 && sizeof(ncclEncryptionConfig_t) == 32 &&
                  sizeof(ncclConfigExt_t) == 24 && sizeof(ncclWaitSignalDesc_t) == 16,
              "layouts of the smaller structures");
#endif
