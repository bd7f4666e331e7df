// SPDX-License-Identifier: Apache-2.0
// NCCL's formula itself, over the graphs that NCCL found: one (algorithm, protocol) for one call.
// cost_model.h fills the graphs from a Fabric; tests fill them from what NVIDIA's library printed. Source:
// NCCL 2.30.7, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime (Apache-2.0), in own words.
#pragma once

#include <cstdint>
#include <limits>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/protocol.h"
#include "src/cost_model/cost_model.h"

namespace dynamiccl {

// What NCCL's search found for one algorithm: GB/s are per channel.
struct AlgorithmGraph {
  int channels = 1;
  double intra_bandwidth = 0;
  double inter_bandwidth = 0;
};

struct NcclModelInput {
  int n_ranks = 1;
  int n_nodes = 1;
  int channels = 1;  // of the communicator: decides where the plateau of Ring/Simple begins
  AlgorithmGraph ring;
  AlgorithmGraph tree;
  AlgorithmGraph pat;                  // NCCL searches none of its own: the Tree's
  AlgorithmGraph nvls{.channels = 0};  // 0: no switch that reduces
  CostConstants constants;
  double graph_latency_us = 0;    // NCCL's latencyInter: of the network, on top of the constants
  double net_overhead_us = 1;     // 1 for Intel and others, 2 for AMD; counts three times for Simple
  bool tree_inside_node = true;   // the Tree graph is a tree inside the node too: 0.85 of the bandwidth
  bool same_channels = false;     // all channels use the same ring: Broadcast and Reduce pay one hop
  bool chunks_cost = false;       // Broadcast and Reduce by Simple over several rings pay the Tree's hops
  double plateau_factor = 1.4;    // of the latency of large Ring/Simple AllReduce between nodes
  bool node_plateau = false;      // within a node, too, by the steps of the ring
  bool tree_corrected = true;     // the share of the Tree's bandwidth that NCCL saw, by size
  double pat_rank_us = 2.8;       // of PAT's latency, for each rank
  double pat_hop_divisor = 3.5;   // what PAT's hops cost less than others
  bool nvls_corrected = true;     // a switch's multicast reaches a share of the links, not the heads' channel
  double nvls_efficiency = 0.85;  // that share: nvlsEfficiency of tuning.cc, Hopper
  double nvls_tree_channel_bandwidth = std::numeric_limits<double>::infinity();
  bool nvls_tree_corrected = false;  // the Tree's share by size, too
};

struct ModelledTime {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // of the algorithm; 0: impossible
};

// As printed by NCCL_DEBUG_SUBSYS=TUNING at init: independent of the message size.
ModelledTime BaseTime(const NcclModelInput& input, Collective collective, Algorithm algorithm,
                      Protocol protocol);

// Microseconds for `bytes` (NCCL's total); -1 where impossible.
double ModelTime(const NcclModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                 Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
