// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 4 (NCCL 2.24 to 2.27): symbol ncclTunerPlugin_v4, a constant object.
// It adds the argument regBuff.
#pragma once

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The type of the symbol. tuner_v5.h describes the calls.
typedef struct {
  const char* name;
  ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void** context);
  // Has the contract of getCollInfo in tuner_v5.h.
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  ncclResult_t (*destroy)(void* context);
} ncclTuner_v4_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v4_t) == 32, "ncclTuner_v4_t layout");
#endif
