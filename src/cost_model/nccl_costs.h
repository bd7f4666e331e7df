// SPDX-License-Identifier: Apache-2.0
// Computes at which cost a release of NVIDIA's NCCL prices each algorithm and protocol for one lone call. The
// input are the graphs that NCCL's topology search found. tests/src/cost_model/nccl_agreement.cc compares the
// costs, and the choice that follows from them, with those of the releases themselves.
//
// Sources: NCCL 2.22 to 2.30, src/graph/tuning.cc and src/enqueue.cc, and src/tuning of later releases
// (Apache-2.0), in own words. Calls are of float and sum, out of place, on buffers that are not registered.
// CollNet is not modelled.
#pragma once

#include <cstdint>
#include <map>

#include "src/collective/collective.h"
#include "src/cost_model/cost_model.h"
#include "src/cost_model/nccl_graph.h"
#include "src/nccl_abi/tuner_v5.h"

namespace dynamiccl {

// Holds what NCCL knows about a communicator after its topology search. It is a plain value, read from NCCL's
// log and graph file.
struct NcclCommunicatorFacts {
  int release = 0;  // as ncclGetVersion: 22809 is 2.28.9
  int n_ranks = 1;
  int n_nodes = 1;
  int channels = 1;  // channels of the communicator
  int nvls_channels = 0;
  int architecture = 90;  // compute capability times ten
  bool amd_cpu = false;
  std::map<Algorithm, NcclGraph> graphs;  // graphs of Ring and Tree, and of NVLS if it has one
  ncclTunerConstants_v5_t constants = {};
};

// Returns the microseconds of a lone call (numPipeOps 1) of `bytes`; -1 for a pair that the release does not
// offer.
CostTable NcclCosts(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes);

}  // namespace dynamiccl
