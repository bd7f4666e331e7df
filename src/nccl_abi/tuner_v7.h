// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 7 (NCCL 2.32.6 and later): symbol ncclTunerPlugin_v7. It is version
// 6 with a row for Rubin in the bandwidth tables of the constants.
#pragma once

#include "src/nccl_abi/tuner_v6.h"

#ifdef __cplusplus
extern "C" {
#endif

// See ncclTunerConstants_v5_t. The fifth row of the bandwidths is that of Rubin.
typedef struct {
  double baseLatencies[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double hwLatencies[3][NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double llMaxBws[5][3];
  double perChMaxRingLL128Bws[5][3];
  double perChMaxTreeLL128Bws[5][3];
  double perChMaxTreeBws[5][3];
  double perChMaxNVLSTreeBws[5][3];
} ncclTunerConstants_v7_t;

// The symbol holds 40 bytes. See tuner_v5.h for the first four members and tuner_v6.h for the last.
typedef struct {
  const char* name;
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                       ncclTunerConstants_v7_t* constants);
  ncclResult_t (*getCollInfo)(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  ncclResult_t (*finalize)(void* ctx);
  ncclResult_t (*getChunkSize)(void* ctx, ncclFunc_t collType, size_t nBytes, int algo, int proto,
                               int nChannels, size_t* chunkSize);
} ncclTuner_v7_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v7_t) == 40, "ncclTuner_v7_t layout");
static_assert(sizeof(ncclTunerConstants_v7_t) == 8 * (7 * 3 + 3 * 7 * 3 + 5 * 5 * 3),
              "ncclTunerConstants_v7_t layout");
#endif
