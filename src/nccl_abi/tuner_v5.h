// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 5 (NCCL 2.28 and later): symbol ncclTunerPlugin_v5, a constant
// object.
#pragma once

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_v5_t;

// Constants of NCCL's cost model, microseconds and GB/s. First index of the bandwidths: compute capability
// class (Volta, Ampere, Hopper, Blackwell); second: 1, 2, more nodes. hwLatencies: NVLink, PCI, network.
typedef struct {
  double baseLatencies[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double hwLatencies[3][NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double llMaxBws[4][3];
  double perChMaxRingLL128Bws[4][3];
  double perChMaxTreeLL128Bws[4][3];
  double perChMaxTreeBws[4][3];
  double perChMaxNVLSTreeBws[4][3];
} ncclTunerConstants_v5_t;

typedef struct {
  const char* name;
  // Once per communicator and rank. In: commId (equal on all ranks), nRanks, nNodes, logFunction,
  // nvlDomainInfo. Out: *ctx. InOut: constants, may be null.
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                       ncclTunerConstants_v5_t* constants);
  // In: collType, nBytes (NCCL's total), numPipeOps, numAlgo, numProto, regBuff. InOut: collCostTable, really
  // float[numAlgo][numProto] of microseconds; *nChannels, preset to 0. A result other than ncclSuccess fails
  // the user's collective, whatever NCCL's header says.
  ncclResult_t (*getCollInfo)(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  ncclResult_t (*finalize)(void* ctx);
} ncclTuner_v5_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v5_t) == 32, "ncclTuner_v5_t layout");
static_assert(sizeof(ncclTunerConstants_v5_t) == 8 * (7 * 3 + 3 * 7 * 3 + 5 * 4 * 3),
              "ncclTunerConstants_v5_t layout");
static_assert(sizeof(ncclNvlDomainInfo_v5_t) == 12, "ncclNvlDomainInfo_v5_t layout");
#endif
