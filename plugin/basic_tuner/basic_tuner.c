// SPDX-License-Identifier: Apache-2.0
// The smallest tuner plugin: always Ring/Simple, channels left to NCCL. A first example, and a control in
// tests: what it asks for must show in NCCL's TUNING line.
//   NCCL_TUNER_PLUGIN=/path/to/libnccl-tuner-basic.so NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING ./your_program
#include "src/nccl_abi/tuner_v5.h"

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
  enum { kRing = 1, kSimple = 2 };
  (void)ctx, (void)collType, (void)nBytes, (void)numPipeOps, (void)regBuff, (void)nChannels;
  // The interface declares float** but passes float[numAlgo][numProto].
  float* table = (float*)collCostTable;
  if (numAlgo <= kRing || numProto <= kSimple) return ncclSuccess;
  float* entry = &table[kRing * numProto + kSimple];
  // A negative entry is impossible here. Cost 0 wins against every real estimate.
  if (*entry >= 0.0f) *entry = 0.0f;
  return ncclSuccess;
}

static ncclResult_t Finalize(void* ctx) {
  (void)ctx;
  return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    .name = "basic (Ring/Simple)", .init = Init, .getCollInfo = GetCollInfo, .finalize = Finalize};
