// SPDX-License-Identifier: Apache-2.0
// How a CostModelInput travels through a tuner's init: hostccl writes it as ncclTunerConstants_v5_t, the
// decision side reads it back, and both compute the same table.
//   baseLatencies = base_latency_us; hwLatencies[NVLINK] = intra_latency_us; hwLatencies[NET] =
//   inter_latency_us hwLatencies[PCI][0][0], [0][1]: latency of the intra and inter links (hostccl has no
//   PCI); [0][2]: 1 without NCCL's corrections for GPU clusters; llMaxBws, perChMax*: the same value in every
//   cell perChMaxNVLSTreeBws[*][0], [1], [2]: bandwidth of the intra and inter links, channels (hostccl has
//   no NVLSTree)
// All rows of a bandwidth are equal, which NVIDIA's own constants never are: that tells the two apart.
#pragma once

#include "src/cost_model/cost_model.h"
#include "src/nccl_abi/tuner_v5.h"

namespace dynamiccl {

ncclTunerConstants_v5_t ToTunerConstants(const CostModelInput& input);

// The exact inverse for hostccl's constants. For NVIDIA's NCCL: its latencies, its Hopper caps for that many
// nodes, and an assumed fabric of DGX class (kAssumed* in the .cc), since NCCL tells a tuner neither its
// links nor its channels. Of ranks and nodes that cannot be the nearest that can.
CostModelInput FromTunerConstants(const ncclTunerConstants_v5_t& constants, int n_ranks, int n_nodes);

// What is assumed before version 5, which tells a tuner no constants: NVIDIA's for Hopper and that fabric.
CostModelInput AssumedCostModel(int n_ranks, int n_nodes);

// Index of Hopper among the compute capabilities of the bandwidth tables.
inline constexpr int kHopperRow = 2;
// The costs alone, from one cell of each bandwidth table (`scale` 0: one node, 1: two, 2: more).
CostConstants CostConstantsOf(const ncclTunerConstants_v5_t& constants, int capability, int scale);

// True for constants that ToTunerConstants made.
bool CarriesFabric(const ncclTunerConstants_v5_t& constants);

}  // namespace dynamiccl
