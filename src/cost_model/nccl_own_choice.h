// SPDX-License-Identifier: Apache-2.0
// What a release of NVIDIA's NCCL costs and picks by itself on the graphs that its search found: algorithm,
// protocol, channels and threads of one lone call without a tuner. Sources: NCCL 2.22 to 2.30,
// src/graph/tuning.cc and src/enqueue.cc, and src/tuning of later releases (Apache-2.0), in own words.
// Calls are of float and sum, out of place, on buffers that are not registered; CollNet is not modelled.
#pragma once

#include <cstdint>
#include <map>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/cost_model/cost_model.h"
#include "src/cost_model/nccl_graph.h"
#include "src/cost_model/nccl_model.h"
#include "src/nccl_abi/tuner_v5.h"

namespace dynamiccl {

// What NCCL knows of a communicator once its graphs are found.
struct NcclCommunicatorFacts {
  int release = 0;  // 22809: 2.28.9
  int n_ranks = 1;
  int n_nodes = 1;
  int channels = 1;  // of the communicator
  int nvls_channels = 0;
  int architecture = 90;  // compute capability times ten
  bool amd_cpu = false;
  std::map<Algorithm, NcclGraph> graphs;  // of Ring, Tree, and NVLS where there is one
  ncclTunerConstants_v5_t constants = {};
};

NcclModelInput NcclModelOf(const NcclCommunicatorFacts& facts);

// Microseconds of a lone call (numPipeOps 1); -1 where the release does not offer the pair.
CostTable NcclCosts(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes);

struct NcclOwnChoice {
  CollectiveConfig config;  // with the channels that are launched
  int threads = 0;          // of a channel, as launched

  friend bool operator==(const NcclOwnChoice&, const NcclOwnChoice&) = default;
};

// `bytes` is NCCL's total.
NcclOwnChoice NcclChoice(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes);

}  // namespace dynamiccl
