/* SPDX-License-Identifier: Apache-2.0
   A tuner plugin that only edits the constants of the cost model: the latency of Tree/LL128 and, in version
   7, the row of Rubin. It is compiled once for each version (TUNER_VERSION). */
#include <stddef.h>

#include "src/nccl_abi/tuner_v7.h"

#if TUNER_VERSION == 7
typedef ncclTuner_v7_t Tuner;
typedef ncclTunerConstants_v7_t Constants;
#define SYMBOL ncclTunerPlugin_v7
#else
typedef ncclTuner_v5_t Tuner;
typedef ncclTunerConstants_v5_t Constants;
#define SYMBOL ncclTunerPlugin_v5
#endif

static ncclResult_t Init(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                         Constants* constants) {
  (void)commId, (void)nRanks, (void)nNodes, (void)logFunction, (void)nvlDomainInfo;
  *ctx = NULL;
  if (constants == NULL) return ncclSuccess;
  constants->baseLatencies[0][1] = 77;
#if TUNER_VERSION == 7
  constants->llMaxBws[4][0] = 99;
#endif
  return ncclSuccess;
}

static ncclResult_t GetCollInfo(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float** collCostTable, int numAlgo, int numProto, int regBuff,
                                int* nChannels) {
  (void)ctx, (void)collType, (void)nBytes, (void)numPipeOps, (void)collCostTable, (void)numAlgo,
      (void)numProto, (void)regBuff, (void)nChannels;
  return ncclSuccess;
}

static ncclResult_t Finalize(void* ctx) {
  (void)ctx;
  return ncclSuccess;
}

__attribute__((visibility("default")))
const Tuner SYMBOL = {.name = "editing", .init = Init, .getCollInfo = GetCollInfo, .finalize = Finalize};
