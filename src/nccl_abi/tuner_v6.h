// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 6 (NCCL 2.30.3 and later): symbol ncclTunerPlugin_v6. It is version
// 5 with an optional function for the chunk size.
#pragma once

#include "src/nccl_abi/tuner_v5.h"

#ifdef __cplusplus
extern "C" {
#endif

// The symbol holds 40 bytes. See tuner_v5.h for the first four members.
typedef struct {
  const char* name;
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                       ncclTunerConstants_v5_t* constants);
  ncclResult_t (*getCollInfo)(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  ncclResult_t (*finalize)(void* ctx);
  // May be null. NCCL calls it after the algorithm, the protocol and the channels are chosen. The tuner may
  // change *chunkSize, in bytes.
  ncclResult_t (*getChunkSize)(void* ctx, ncclFunc_t collType, size_t nBytes, int algo, int proto,
                               int nChannels, size_t* chunkSize);
} ncclTuner_v6_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v6_t) == 40, "ncclTuner_v6_t layout");
#endif
