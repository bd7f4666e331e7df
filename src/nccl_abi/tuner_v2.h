// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 2 (NCCL 2.21): symbol ncclTunerPlugin_v2, a constant object. A tuner
// of this version names one algorithm and protocol instead of pricing all.
#pragma once

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The symbol holds 32 bytes: a name and three functions. `context` is the one that init set, one for each
// communicator and rank. An error of getCollInfo fails the user's collective.
typedef struct {
  const char* name;
  // Called once per communicator and rank. Sets *context.
  ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void** context);
  // The inputs are collType, nBytes (NCCL's total), whether the communicator has CollNet and NVLS, and
  // numPipeOps. The tuner may set *algorithm and *protocol, both or none (they are -1 before, "no opinion"),
  // and *nChannels (0 before).
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int collNetSupport,
                              int nvlsSupport, int numPipeOps, int* algorithm, int* protocol, int* nChannels);
  ncclResult_t (*destroy)(void* context);
} ncclTuner_v2_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v2_t) == 32, "ncclTuner_v2_t layout");
#endif
