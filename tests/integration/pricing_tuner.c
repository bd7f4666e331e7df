/* SPDX-License-Identifier: Apache-2.0
   A tuner plugin that only edits the constants of the cost model, as NVIDIA's example plugin does from its
   file. If TEST_PRICE_TREE_LL128 is set, Tree/LL128 costs so much on this rank that it counts as not
   offered. */
#include <stdlib.h>

#include "src/nccl_abi/tuner_v5.h"

static ncclResult_t Init(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                         ncclTunerConstants_v5_t* constants) {
  (void)commId, (void)nRanks, (void)nNodes, (void)logFunction, (void)nvlDomainInfo;
  *ctx = NULL;
  if (constants != NULL && getenv("TEST_PRICE_TREE_LL128") != NULL) constants->baseLatencies[0][1] = 1e9;
  return ncclSuccess;
}

static ncclResult_t GetCollInfo(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float** collCostTable, int numAlgo, int numProto, int regBuff,
                                int* nChannels) {
  (void)ctx, (void)collType, (void)nBytes, (void)numPipeOps, (void)collCostTable, (void)numAlgo,
      (void)numProto;
  (void)regBuff, (void)nChannels;
  return ncclSuccess;
}

static ncclResult_t Finalize(void* ctx) {
  (void)ctx;
  return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    .name = "pricing", .init = Init, .getCollInfo = GetCollInfo, .finalize = Finalize};
