// SPDX-License-Identifier: Apache-2.0
// Carries a CostModelInput through a tuner's init. hostccl writes it as ncclTunerConstants_v5_t; the plugin
// reads it back, so that both compute the same cost table. hostccl has neither PCI nor NVLSTree, so their
// cells carry the fabric:
//
//   baseLatencies                       base_latency_us
//   hwLatencies[NVLINK], [NET]          intra_latency_us, inter_latency_us
//   hwLatencies[PCI][0][0], [0][1]      latency of the intra and of the inter links
//   hwLatencies[PCI][0][2]              1 without NCCL's corrections for GPU clusters, else 0
//   llMaxBws, perChMax*                 the same value in every cell
//   perChMaxNVLSTreeBws[*][0], [1]      bandwidth of the intra and of the inter links
//   perChMaxNVLSTreeBws[*][2]           number of channels
//
// All rows of a bandwidth table are equal, which NVIDIA's own constants never are. So equal rows show
// hostccl's constants.
#pragma once

#include "src/cost_model/cost_model.h"
#include "src/nccl_abi/tuner_v5.h"

namespace dynamiccl {

// Encodes the input for a tuner of version 5 or later.
ncclTunerConstants_v5_t ToTunerConstants(const CostModelInput& input);

// Inverts ToTunerConstants exactly for hostccl's constants. For NVIDIA's NCCL it takes NCCL's latencies, its
// Hopper caps for that many nodes, and an assumed fabric of DGX class (kAssumed* in the .cc), because NCCL
// tells a tuner neither its links nor its channels. Impossible numbers of ranks and nodes are replaced by the
// nearest possible ones.
CostModelInput FromTunerConstants(const ncclTunerConstants_v5_t& constants, int n_ranks, int n_nodes);

// Returns the input for tuners before version 5, which get no constants: NVIDIA's constants for Hopper, and
// the assumed fabric.
CostModelInput AssumedCostModel(int n_ranks, int n_nodes);

// Row of Hopper among the compute capabilities of the bandwidth tables.
inline constexpr int kHopperRow = 2;
// Returns the costs in `constants`, without the fabric. `capability` is the row to use in each bandwidth
// table, and `scale` the column: 0 for one node, 1 for two, 2 for more.
CostConstants CostConstantsOf(const ncclTunerConstants_v5_t& constants, int capability, int scale);

// Returns whether ToTunerConstants made these constants, that is, whether they come from hostccl.
bool CarriesFabric(const ncclTunerConstants_v5_t& constants);

}  // namespace dynamiccl
