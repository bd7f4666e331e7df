// SPDX-License-Identifier: Apache-2.0
// Builds the inputs of NCCL's formula (nccl_model.h) from a Fabric, prices all pairs, and picks the cheapest.
// The cost of a pair is latency * batches + bytes / bandwidth.
#include "src/cost_model/cost_model.h"

#include <algorithm>
#include <limits>

#include "src/cost_model/nccl_model.h"

namespace dynamiccl {
namespace {

// The most threads of a block, by protocol: NCCL's defaults for Ring and Tree kernels (enqueue.cc).
constexpr int kMaxThreads[kProtocols] = {512, 640, 512};
// If all channels together carry at most this many GB/s, NCCL up to 2.30 launches half the threads for
// Ring/Simple.
constexpr double kSlowBusGbps = 12;
constexpr int kSlowBusThreads = 256;
// Bytes that each thread should have before one more channel pays (threadThresholds of tuning.cc).
constexpr int kThreadThreshold[kProtocols] = {8, 8, 64};

// Returns the GB/s that a ring or tree reaches: those of the slowest kind of link in the ring or tree.
double LinkBandwidth(const Fabric& fabric) {
  return fabric.n_nodes > 1 ? std::min(fabric.intra.bandwidth_gbps, fabric.inter.bandwidth_gbps)
                            : fabric.intra.bandwidth_gbps;
}

// NVIDIA's own constants have no base latency for NVLS and NVLSTree, and a Fabric does not say whether a
// switch can reduce. So both are priced only if the constants state a base latency. Inside one node, no
// network bounds NVLS.
AlgorithmGraph MulticastGraph(const CostModelInput& input, AlgorithmGraph graph) {
  const bool one_node = input.fabric.n_nodes == 1;
  const auto row = static_cast<size_t>(one_node ? Algorithm::kNvls : Algorithm::kNvlsTree);
  const bool priced = input.constants.base_latency_us[row][static_cast<size_t>(Protocol::kSimple)] > 0;
  if (!priced) return {.channels = 0};
  if (one_node) graph.inter_bandwidth = std::numeric_limits<double>::infinity();
  return graph;
}

// Returns the input of NCCL's formula for a number of channels that share the links evenly. Two terms of the
// formula are set to zero: the constants contain the latencies of the links already, and the network of a
// Fabric costs no processor time.
NcclModelInput ModelOf(const CostModelInput& input, int channels) {
  const double reachable = channels * input.constants.tree_channel_bandwidth;
  const double bus = channels < input.fabric.max_channels ? std::min(LinkBandwidth(input.fabric), reachable)
                                                          : LinkBandwidth(input.fabric);
  const AlgorithmGraph graph{
      .channels = channels, .intra_bandwidth = bus / channels, .inter_bandwidth = bus / channels};
  return {.n_ranks = input.fabric.n_ranks,
          .n_nodes = input.fabric.n_nodes,
          .channels = channels,
          .ring = graph,
          .tree = graph,
          .pat = graph,
          .nvls = MulticastGraph(input, graph),
          .constants = input.constants,
          .graph_latency_us = 0,
          .net_overhead_us = 0,
          .tree_inside_node = false,
          .plateau_factor = input.gpu_corrections ? NcclModelInput{}.plateau_factor : 1.0,
          .tree_corrected = input.gpu_corrections,
          .pat_rank_us = input.gpu_corrections ? NcclModelInput{}.pat_rank_us : 0.0,
          .pat_hop_divisor = input.gpu_corrections ? NcclModelInput{}.pat_hop_divisor : 1.0,
          .nvls_corrected = input.gpu_corrections};
}

}  // namespace

CostTable EstimateCosts(const CostModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                        const ConfigMask& allowed) {
  const NcclModelInput model = ModelOf(input, input.fabric.max_channels);
  CostTable table;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      const bool possible = allowed.test(ConfigIndex(algorithm, protocol));
      table.microseconds[static_cast<size_t>(a)][static_cast<size_t>(p)] =
          possible ? static_cast<float>(ModelTime(model, collective, bytes, n_pipe_ops, algorithm, protocol))
                   : -1.0f;
    }
  }
  return table;
}

double EstimateCost(const CostModelInput& input, Collective collective, uint64_t bytes,
                    const CollectiveConfig& config) {
  if (config.leaves_nccl_alone()) return -1;
  const int channels = config.channels == 0 ? input.fabric.max_channels
                                            : std::min<int>(config.channels, input.fabric.max_channels);
  return ModelTime(ModelOf(input, channels), collective, bytes, 1, config.algorithm, config.protocol);
}

double TimeOfNcclsChoice(const CostModelInput& input, Collective collective, uint64_t bytes,
                         const CollectiveConfig& nccls, const ConfigMask& allowed) {
  const CostTable costs = EstimateCosts(input, collective, bytes, 1, allowed);
  const CollectiveConfig own = nccls.leaves_nccl_alone() ? CheapestConfig(costs) : nccls;
  return own.leaves_nccl_alone() ? -1 : costs.at(own.algorithm, own.protocol);
}

int DefaultChannels(const CostModelInput& input, Collective collective, uint64_t bytes, Algorithm algorithm,
                    Protocol protocol) {
  (void)collective;  // NCCL's thresholds do not depend on it up to 2.30.
  const auto p = static_cast<size_t>(protocol);
  const bool ring = algorithm == Algorithm::kRing;
  const bool slow = ring && protocol == Protocol::kSimple && LinkBandwidth(input.fabric) <= kSlowBusGbps;
  const uint64_t threads = static_cast<uint64_t>(slow ? kSlowBusThreads : kMaxThreads[p]);
  const int per_thread =
      ring && protocol == Protocol::kLL ? kThreadThreshold[p] * input.fabric.n_ranks : kThreadThreshold[p];
  int channels = std::max(1, input.fabric.max_channels);
  while (channels > 1 &&
         bytes < static_cast<uint64_t>(channels) * threads * static_cast<uint64_t>(per_thread))
    --channels;
  return channels;
}

CollectiveConfig CheapestConfig(const CostTable& table) {
  CollectiveConfig best = kLeaveNcclAlone;
  float best_time = 0;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const float time = table.microseconds[static_cast<size_t>(a)][static_cast<size_t>(p)];
      // The comparison also skips a NaN, which only a foreign plugin could have written.
      if (!(time >= 0) || (!best.leaves_nccl_alone() && !(time < best_time))) continue;
      best = {static_cast<Algorithm>(a), static_cast<Protocol>(p), 0};
      best_time = time;
    }
  }
  return best;
}

}  // namespace dynamiccl
