// SPDX-License-Identifier: Apache-2.0
// NCCL's published cost model: what each (algorithm, protocol) is expected to cost on a fabric, and what NCCL
// would pick. Source of formulas and constants: NCCL 2.30.7, src/graph/tuning.cc and src/enqueue.cc
// (Apache-2.0), in own words. Deterministic: only + - * / and comparisons of doubles, no libm, so every
// machine computes the same bits.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/fabric.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {

// The model's constants, microseconds and GB/s, in the layout of ncclTunerConstants_v5_t: NCCL hands them to
// a tuner at init, so ranks that attest the same constants compute the same table. The hop latencies include
// the links' own.
struct CostConstants {
  double base_latency_us[kAlgorithms][kProtocols] = {};
  double intra_latency_us[kAlgorithms][kProtocols] = {};  // one hop inside a node
  double inter_latency_us[kAlgorithms][kProtocols] = {};  // one hop between nodes
  double ll_max_bandwidth = 0;                            // cap of LL, all channels together
  double ring_ll128_channel_bandwidth = 0;                // caps per channel
  double tree_ll128_channel_bandwidth = 0;
  double tree_channel_bandwidth = 0;

  friend bool operator==(const CostConstants&, const CostConstants&) = default;
};

// Everything that the model depends on beside the call; equal on all ranks.
struct CostModelInput {
  Fabric fabric;
  CostConstants constants;
  // NCCL's corrections for what it saw on GPU clusters: the share of a Tree's bandwidth by size, 1.4 times
  // the latency of large Ring/Simple AllReduces between nodes, a rank's share and cheaper hops of PAT, what a
  // switch's multicast reaches. False: the plain model.
  bool gpu_corrections = true;

  friend bool operator==(const CostModelInput&, const CostModelInput&) = default;
};

// Constants of NCCL 2.30.7 for Hopper, NVLink inside a node and a network between nodes. NCCL's caps depend
// on the number of nodes (1, 2, more).
CostConstants NcclHopperConstants(int n_nodes);

// Expected microseconds; -1 where the pair is impossible for the collective or not in `allowed`.
struct CostTable {
  std::array<std::array<float, kProtocols>, kAlgorithms> microseconds;

  float at(Algorithm a, Protocol p) const {
    return microseconds[static_cast<size_t>(a)][static_cast<size_t>(p)];
  }
};

// `bytes` is NCCL's total, `n_pipe_ops` as NCCL passes it to a tuner (1 for a single call). Ring, Tree and,
// with one rank a node, PAT are priced, and NVLS (one node) and NVLSTree (several) where the constants state
// a base latency for them; CollNet needs hardware that a Fabric does not describe and is impossible here.
CostTable EstimateCosts(const CostModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                        const ConfigMask& allowed);

// Expected microseconds of one config with an explicit number of channels (0: all of the fabric's, as NCCL's
// table assumes); -1 where impossible. NCCL prices no channel counts: fewer channels are taken to lower the
// bandwidth only where channels * tree_channel_bandwidth is less than the links give.
double EstimateCost(const CostModelInput& input, Collective collective, uint64_t bytes,
                    const CollectiveConfig& config);

// NCCL's channel count for the size: as many as keep every channel busy (thresholds of enqueue.cc up
// to 2.30).
int DefaultChannels(const CostModelInput& input, Collective collective, uint64_t bytes, Algorithm algorithm,
                    Protocol protocol);

// The cheapest entry as NCCL up to 2.30 picks it: strictly smaller wins, scanning from Tree/LL; negative
// entries are skipped; kLeaveNcclAlone when nothing is possible. Channels are not filled in.
CollectiveConfig CheapestConfig(const CostTable& table);

}  // namespace dynamiccl
