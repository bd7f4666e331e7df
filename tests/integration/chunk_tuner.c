/* SPDX-License-Identifier: Apache-2.0
   A tuner plugin of a user that chooses nothing but the size of chunks: 4096 bytes. */
#include "src/nccl_abi/tuner_v6.h"

static ncclResult_t Init(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                         ncclTunerConstants_v5_t* constants) {
  (void)commId, (void)nRanks, (void)nNodes, (void)logFunction, (void)nvlDomainInfo, (void)constants;
  *ctx = NULL;
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

static ncclResult_t GetChunkSize(void* ctx, ncclFunc_t collType, size_t nBytes, int algo, int proto,
                                 int nChannels, size_t* chunkSize) {
  (void)ctx, (void)collType, (void)nBytes, (void)algo, (void)proto, (void)nChannels;
  *chunkSize = 4096;
  return ncclSuccess;
}

static ncclResult_t Finalize(void* ctx) {
  (void)ctx;
  return ncclSuccess;
}

__attribute__((visibility("default")))
const ncclTuner_v6_t ncclTunerPlugin_v6 = {.name = "chunks",
                                           .init = Init,
                                           .getCollInfo = GetCollInfo,
                                           .finalize = Finalize,
                                           .getChunkSize = GetChunkSize};
