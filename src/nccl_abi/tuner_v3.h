// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 3 (NCCL 2.22 and 2.23): symbol ncclTunerPlugin_v3, a constant
// object. It is the first version with a table of costs.
#pragma once

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The type of the symbol. tuner_v5.h describes the calls.
typedef struct {
  const char* name;
  ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void** context);
  // Has the contract of getCollInfo in tuner_v5.h, without regBuff.
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int* nChannels);
  ncclResult_t (*destroy)(void* context);
} ncclTuner_v3_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v3_t) == 32, "ncclTuner_v3_t layout");
#endif
