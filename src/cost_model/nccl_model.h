// SPDX-License-Identifier: Apache-2.0
// NCCL's formula itself, over the graphs that NCCL found: the time of one (algorithm, protocol) for one call.
// cost_model.h fills the graphs from a Fabric; nccl_costs.h and tests fill them from what NVIDIA's
// library printed.
//
//   time = latency * plateau * batches + bytes / (bandwidth * share by size)
//
// Source: NCCL 2.30.7, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime (Apache-2.0), in own
// words.
#pragma once

#include <cstdint>
#include <limits>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/protocol.h"
#include "src/cost_model/cost_model.h"

namespace dynamiccl {

// The graph that NCCL's topology search found for one algorithm. Bandwidths are GB/s of one channel.
struct AlgorithmGraph {
  int channels = 1;
  double intra_bandwidth = 0;
  double inter_bandwidth = 0;
};

// Everything that the formula reads. A plain value of one communicator; the members that differ between
// releases and GPU generations default to those of NCCL 2.30 on Hopper. It has 22 members because NCCL's
// formula has that many inputs, and each caller sets them by name.
struct NcclModelInput {
  int n_ranks = 1;
  int n_nodes = 1;
  // Channels of the communicator. With the number of ranks they decide from which size on the plateau_factor
  // holds.
  int channels = 1;
  AlgorithmGraph ring;
  AlgorithmGraph tree;
  AlgorithmGraph pat;                  // NCCL searches no graph for PAT: it uses the Tree's
  AlgorithmGraph nvls{.channels = 0};  // 0: no switch that reduces
  CostConstants constants;
  // NCCL's latencyInter: latency of the network, which is added to the constants.
  double graph_latency_us = 0;
  // Microseconds of processor time for a network transfer: 1 us on Intel and others, 2 us on AMD. Simple pays
  // it three times.
  double net_overhead_us = 1;
  // True if the Tree graph is a tree inside the node too. NCCL then counts 0.85 of the bandwidth.
  bool tree_inside_node = true;
  // True if all channels use the same ring. Broadcast and Reduce then pay one hop only.
  bool same_channels = false;
  // True if Broadcast and Reduce by Simple over several rings pay the hop latencies of the Tree.
  bool chunks_cost = false;
  // Factor on the latency of large Ring/Simple AllReduces between nodes (NCCL's "plateau effect").
  double plateau_factor = 1.4;
  // True if the plateau factor holds within a node too and grows with the steps of the ring.
  bool node_plateau = false;
  // True if Tree's bandwidth is multiplied by the shares that NCCL measured by size.
  bool tree_corrected = true;
  // Microseconds that each rank adds to PAT's latency, and how much cheaper PAT's hops are than others.
  double pat_rank_us = 2.8;
  double pat_hop_divisor = 3.5;
  // True if a switch's multicast reaches only the share nvls_efficiency of the links, less one channel's
  // part.
  bool nvls_corrected = true;
  // nvlsEfficiency of tuning.cc, for Hopper.
  double nvls_efficiency = 0.85;
  // GB/s that one channel of NVLSTree carries at most.
  double nvls_tree_channel_bandwidth = std::numeric_limits<double>::infinity();
  // True if NVLSTree's bandwidth is also multiplied by the Tree's shares by size.
  bool nvls_tree_corrected = false;
};

// Latency and bandwidth of a pair (algorithm, protocol) before corrections by size. Bandwidth 0 means that
// the pair is impossible.
struct ModelledTime {
  double latency_us = 0;
  double bandwidth_gbps = 0;  // algorithm bandwidth: bytes of the call / time
};

// Returns the latency and bandwidth as NCCL prints them at init with NCCL_DEBUG_SUBSYS=TUNING.
ModelledTime BaseTime(const NcclModelInput& input, Collective collective, Algorithm algorithm,
                      Protocol protocol);

// Returns the microseconds of a call of `bytes` (NCCL's total); -1 if the pair is impossible.
double ModelTime(const NcclModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                 Algorithm algorithm, Protocol protocol);

}  // namespace dynamiccl
