// SPDX-License-Identifier: Apache-2.0
// NCCL's published cost model: the expected time of each (algorithm, protocol) on a fabric, and which one
// NCCL would pick. The config agent's predictions are corrections of this model.
//
// Formulas and constants are those of NCCL 2.30.7, src/graph/tuning.cc and src/enqueue.cc (Apache-2.0), in
// own words. The model uses only + - * / and comparisons of doubles and no function of libm, so every machine
// computes the same bits. All functions are pure and may be called from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/fabric.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {

// The model's constants in microseconds and GB/s, in the layout of ncclTunerConstants_v5_t. NCCL hands them
// to a tuner at init, so ranks that attest the same constants compute the same table. Hop latencies include
// the latency of the link.
struct CostConstants {
  double base_latency_us[kAlgorithms][kProtocols] = {};
  double intra_latency_us[kAlgorithms][kProtocols] = {};  // one hop inside a node
  double inter_latency_us[kAlgorithms][kProtocols] = {};  // one hop between nodes
  double ll_max_bandwidth = 0;                            // cap of LL over all channels together
  // The most GB/s of one channel, by algorithm and protocol.
  double ring_ll128_channel_bandwidth = 0;
  double tree_ll128_channel_bandwidth = 0;
  double tree_channel_bandwidth = 0;

  friend bool operator==(const CostConstants&, const CostConstants&) = default;
};

// Everything that the model depends on beside the call itself; equal on all ranks.
struct CostModelInput {
  Fabric fabric;
  CostConstants constants;
  // True: apply NCCL's corrections for what it observed on GPU clusters: the share of Tree's bandwidth
  // by size, 1.4 times the latency for large Ring/Simple AllReduces between nodes, PAT's cost per rank and
  // cheaper hops, and the share of the links that a switch's multicast reaches. hostccl sets it to false.
  bool gpu_corrections = true;

  friend bool operator==(const CostModelInput&, const CostModelInput&) = default;
};

// Returns the constants of NCCL 2.30.7 for Hopper GPUs, with NVLink inside a node and a network between
// nodes. NCCL has separate caps for 1, 2 and more nodes.
CostConstants NcclHopperConstants(int n_nodes);

// Expected microseconds by [algorithm][protocol]. A negative entry means that the pair is not allowed or that
// the collective does not have it.
struct CostTable {
  std::array<std::array<float, kProtocols>, kAlgorithms> microseconds;

  float at(Algorithm a, Protocol p) const {
    return microseconds[static_cast<size_t>(a)][static_cast<size_t>(p)];
  }
};

// Prices every pair in `allowed`. `bytes` is NCCL's total; `n_pipe_ops` is the number that NCCL passes to a
// tuner (1 for a single call).
//
// Ring and Tree are always priced, and PAT if each node has one rank. NVLS (one node) and NVLSTree (several
// nodes) are priced if the constants state a base latency for them. CollNet needs hardware that a Fabric does
// not describe, so it is not priced.
CostTable EstimateCosts(const CostModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                        const ConfigMask& allowed);

// Returns the expected microseconds of one configuration for a single call; -1 if it is impossible. Channels
// 0 means all channels of the fabric, as NCCL's table assumes. NCCL itself prices no channel counts. Here
// fewer channels lower the bandwidth only if channels * tree_channel_bandwidth is less than the links carry.
double EstimateCost(const CostModelInput& input, Collective collective, uint64_t bytes,
                    const CollectiveConfig& config);

// Returns the number of channels that NCCL uses for the size: the most that each have enough to do
// (thresholds of enqueue.cc up to 2.30).
int DefaultChannels(const CostModelInput& input, Collective collective, uint64_t bytes, Algorithm algorithm,
                    Protocol protocol);

// Returns the microseconds that the model expects of NCCL's own choice among `allowed`, with all channels of
// the fabric, as NCCL's table has it; -1 if nothing is possible. `nccls` is that choice; kLeaveNcclAlone
// stands for the cheapest pair. Jobs and the training data of policies measure the slowness of calls against
// this time, at the least size of the call's size class.
double TimeOfNcclsChoice(const CostModelInput& input, Collective collective, uint64_t bytes,
                         const CollectiveConfig& nccls, const ConfigMask& allowed);

// Returns the cheapest entry as NCCL up to 2.30 picks it: the scan begins with Tree/LL, and only a strictly
// smaller cost wins. Negative entries are skipped. The channels are 0. Returns kLeaveNcclAlone if no entry is
// possible.
CollectiveConfig CheapestConfig(const CostTable& table);

}  // namespace dynamiccl
