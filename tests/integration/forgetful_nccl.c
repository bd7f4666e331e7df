/* SPDX-License-Identifier: Apache-2.0
   Preloaded before the object on one rank. At NCCL's question number TEST_FORGETS_AT about an AllReduce, it
   tells the object that NCCL offers none of the configs that it offered when the ranks agreed. NCCL gets the
   previous answer, so that this rank continues like the others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl_abi/tuner_v7.h"

enum { kMaxCells = 64 };

static const ncclTuner_v7_t* Object(void) {
  return (const ncclTuner_v7_t*)dlsym(RTLD_NEXT, "ncclTunerPlugin_v7");
}

static ncclResult_t Init(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                         ncclTunerConstants_v7_t* constants) {
  return Object()->init(ctx, commId, nRanks, nNodes, logFunction, nvlDomainInfo, constants);
}

static int IsTheOne(ncclFunc_t collType, int numPipeOps) {
  static int questions = 0;
  const char* at = getenv("TEST_FORGETS_AT");
  return at != NULL && collType == ncclFuncAllReduce && numPipeOps > 0 && ++questions == atoi(at);
}

static ncclResult_t GetCollInfo(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float** collCostTable, int numAlgo, int numProto, int regBuff,
                                int* nChannels) {
  static float answered[kMaxCells];
  static int channels = 0;
  float* table = (float*)collCostTable;
  const size_t cells = (size_t)numAlgo * (size_t)numProto;
  if (cells > kMaxCells) return ncclInternalError;
  if (!IsTheOne(collType, numPipeOps)) {
    const ncclResult_t result = Object()->getCollInfo(ctx, collType, nBytes, numPipeOps, collCostTable,
                                                      numAlgo, numProto, regBuff, nChannels);
    if (collType != ncclFuncAllReduce) return result;
    memcpy(answered, table, cells * sizeof(float));
    channels = *nChannels;
    return result;
  }
  for (size_t cell = 0; cell < cells; ++cell) table[cell] = -1.0f;
  const ncclResult_t result = Object()->getCollInfo(ctx, collType, nBytes, numPipeOps, collCostTable, numAlgo,
                                                    numProto, regBuff, nChannels);
  memcpy(table, answered, cells * sizeof(float));
  *nChannels = channels;
  return result;
}

static ncclResult_t Finalize(void* ctx) {
  return Object()->finalize(ctx);
}

__attribute__((visibility("default"))) const ncclTuner_v7_t ncclTunerPlugin_v7 = {
    .name = "forgetful", .init = Init, .getCollInfo = GetCollInfo, .finalize = Finalize};
