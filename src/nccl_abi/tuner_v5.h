// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface, version 5 (NCCL 2.28 and later): symbol ncclTunerPlugin_v5, a constant
// object. It adds the communicator's id and the constants of the cost model to init. This header describes
// the calls for versions 3 to 6.
#pragma once

#include "src/nccl_abi/tuner_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Says how the ranks spread over NVLink domains, groups of GPUs with NVLink between all of them.
typedef struct {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_v5_t;

// Constants of NCCL's cost model in microseconds and GB/s. First index of the bandwidths: generation of GPU
// (Volta, Ampere, Hopper, Blackwell); second: one node, two nodes, more. First index of hwLatencies: NVLink,
// PCI, network.
typedef struct {
  double baseLatencies[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double hwLatencies[3][NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
  double llMaxBws[4][3];
  double perChMaxRingLL128Bws[4][3];
  double perChMaxTreeLL128Bws[4][3];
  double perChMaxTreeBws[4][3];
  double perChMaxNVLSTreeBws[4][3];
} ncclTunerConstants_v5_t;

// The type of the symbol. NCCL may call the functions from several threads at once, for different
// communicators.
typedef struct {
  const char* name;
  // Called once per communicator and rank. The inputs are commId (equal on all ranks), nRanks, nNodes,
  // logFunction and nvlDomainInfo. Sets *ctx. `constants` may be null; NCCL uses the values that the tuner
  // changes in it.
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                       ncclTunerConstants_v5_t* constants);
  // The inputs are collType, nBytes (NCCL's total), numPipeOps, numAlgo, numProto and regBuff (whether the
  // buffers are registered). collCostTable is really float[numAlgo][numProto], in microseconds; the tuner may
  // change it, and NCCL takes the cheapest entry. *nChannels is 0 before, which leaves the number to NCCL. A
  // result other than ncclSuccess fails the user's collective, whatever NCCL's header says.
  ncclResult_t (*getCollInfo)(void* ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  // Called when the communicator ends; frees what init made. NCCL does not call it for communicators that
  // live until the process exits.
  ncclResult_t (*finalize)(void* ctx);
} ncclTuner_v5_t;

#ifdef __cplusplus
}

static_assert(sizeof(ncclTuner_v5_t) == 32, "ncclTuner_v5_t layout");
static_assert(sizeof(ncclTunerConstants_v5_t) == 8 * (7 * 3 + 3 * 7 * 3 + 5 * 4 * 3),
              "ncclTunerConstants_v5_t layout");
static_assert(sizeof(ncclNvlDomainInfo_v5_t) == 12, "ncclNvlDomainInfo_v5_t layout");
#endif
