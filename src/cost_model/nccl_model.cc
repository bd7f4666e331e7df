// SPDX-License-Identifier: Apache-2.0
// ncclTopoTuneModel and ncclTopoGetAlgoTime of NCCL 2.30.7 (src/graph/tuning.cc), one function for each
// algorithm. Each computes a latency from the hops on the longest path and an algorithm bandwidth from what
// the slowest link of a channel carries. ModelTime then applies the corrections by size. Factors without a
// name (0.92, 3.8, 7/9, 0.85, 0.75) are NCCL's own.
#include "src/cost_model/nccl_model.h"

#include <algorithm>
#include <bit>

namespace dynamiccl {
namespace {

// Every algorithm but Ring runs this many collectives in one batch of device work
// (NCCL_MAX_DEV_WORK_BATCH_COLLS).
constexpr int kBatchedCollectives = 8;

// treeCorrectionFactor of tuning.cc: the share of Tree's bandwidth that a call reaches, by
// [protocol][floor(log2(bytes / 64))].
constexpr int kTreeCorrections = 24;
constexpr double kTreeCorrection[kProtocols][kTreeCorrections] = {
    {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
     0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
     0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9}};

int FloorLog2(uint64_t value) {
  return value == 0 ? 0 : std::bit_width(value) - 1;
}

// Returns the number of chunks that every rank sends around the ring.
int RingSteps(const NcclModelInput& input, Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (input.n_ranks - 1);
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return input.n_ranks - 1;
    default:
      return input.n_ranks;
  }
}

double At(const double (&table)[kAlgorithms][kProtocols], Algorithm algorithm, Protocol protocol) {
  return table[static_cast<size_t>(algorithm)][static_cast<size_t>(protocol)];
}

// Returns the GB/s of all channels together. With more than two nodes the links between nodes bound them.
double BusBandwidth(const NcclModelInput& input, const AlgorithmGraph& graph) {
  return graph.channels * (input.n_nodes <= 2 ? graph.intra_bandwidth : graph.inter_bandwidth);
}

// Returns the microseconds of one hop between nodes. With one rank on each node, every hop leaves the node,
// and NCCL takes the Tree's row for all algorithms. Simple pays the network's latency twice.
double InterHop(const NcclModelInput& input, Algorithm algorithm, Protocol protocol) {
  const Algorithm row = input.n_ranks == input.n_nodes ? Algorithm::kTree : algorithm;
  const double hop = At(input.constants.inter_latency_us, row, protocol) + input.graph_latency_us;
  return protocol == Protocol::kSimple ? hop + input.graph_latency_us : hop;
}

ModelledTime RingTime(const NcclModelInput& input, Collective collective, Protocol protocol) {
  const CostConstants& constants = input.constants;
  const int steps = RingSteps(input, collective);
  // LL sends as many bytes of flags as of data, so it reaches half of the links' bandwidth. LL128 reaches
  // 120/128 of it; NCCL's code has 0.92 for that.
  double bus = BusBandwidth(input, input.ring);
  if (protocol == Protocol::kLL) bus = std::min(constants.ll_max_bandwidth, bus * 0.5);
  if (protocol == Protocol::kLL128) {
    bus = std::min(bus * 0.92, input.ring.channels * constants.ring_ll128_channel_bandwidth);
  }
  const double base = At(constants.base_latency_us, Algorithm::kRing, protocol);
  const double inter = InterHop(input, Algorithm::kRing, protocol);
  double intra = At(constants.intra_latency_us, Algorithm::kRing, protocol);
  ModelledTime time{.bandwidth_gbps = bus * input.n_ranks / steps};
  if (collective == Collective::kBroadcast || collective == Collective::kReduce) {
    // For Broadcast and Reduce NCCL reads the latency from the Ring's row of its table, even with one rank
    // per node. If NCCL models these collectives in chunks, it reads the Tree's row.
    const bool chunked = input.chunks_cost && !input.same_channels && protocol == Protocol::kSimple;
    const Algorithm row = chunked ? Algorithm::kTree : Algorithm::kRing;
    const double network = At(constants.inter_latency_us, row, protocol) + input.graph_latency_us;
    const double hop = input.n_nodes > 1 ? network : At(constants.intra_latency_us, row, protocol);
    time.latency_us = input.same_channels ? base + hop : base + steps * hop;
    return time;
  }
  // Steps that cross nodes have the network's latency. In NCCL's formula, with several nodes every other step
  // takes at least as long as the processor needs for a network transfer.
  const int inter_steps = (collective == Collective::kAllReduce ? 2 : 1) * (input.n_nodes - 1);
  const double overhead = protocol == Protocol::kSimple ? 3 * input.net_overhead_us : input.net_overhead_us;
  if (input.n_nodes > 1) intra = std::max(intra, overhead);
  time.latency_us = base + (steps - inter_steps) * intra + inter_steps * inter;
  return time;
}

// Returns the time of a Tree. A call passes the tree up and down, so it pays twice for the chain inside the
// node and for log2(nodes) hops between nodes.
ModelledTime TreeTime(const NcclModelInput& input, Protocol protocol) {
  const CostConstants& constants = input.constants;
  double bus = std::min(BusBandwidth(input, input.tree) * 0.92,
                        input.tree.channels * constants.tree_channel_bandwidth);
  if (protocol == Protocol::kLL) bus = std::min(bus / 3.8, constants.ll_max_bandwidth);
  if (protocol == Protocol::kLL128) {
    bus = std::min(bus * (input.n_nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                   input.tree.channels * constants.tree_ll128_channel_bandwidth);
  }
  if (input.tree_inside_node) bus *= 0.85;
  const int inside = input.n_ranks / input.n_nodes - 1;
  const int across = FloorLog2(static_cast<uint64_t>(input.n_nodes));
  const double hops = inside * At(constants.intra_latency_us, Algorithm::kTree, protocol) +
                      across * InterHop(input, Algorithm::kTree, protocol);
  return {.latency_us = At(constants.base_latency_us, Algorithm::kTree, protocol) + 2 * hops,
          .bandwidth_gbps = 0.5 * bus};
}

// Returns the time of PAT between nodes of one rank each: log2(nodes) hops, plus a cost for each rank.
ModelledTime PatTime(const NcclModelInput& input) {
  const double hops = FloorLog2(static_cast<uint64_t>(input.n_nodes)) *
                      InterHop(input, Algorithm::kPat, Protocol::kSimple) / input.pat_hop_divisor;
  return {.latency_us = At(input.constants.base_latency_us, Algorithm::kPat, Protocol::kSimple) + hops +
                        input.pat_rank_us * input.n_ranks,
          .bandwidth_gbps = 0.75 * BusBandwidth(input, input.pat)};
}

// Returns the GB/s of one channel over the links inside the node. With NCCL's corrections, one channel's
// share of the links is not used.
double NvlsChannelBandwidth(const NcclModelInput& input, Collective collective) {
  const double reached =
      input.nvls_corrected ? input.nvls_efficiency * (input.nvls.channels - 1) / input.nvls.channels : 1.0;
  const double ranks = static_cast<double>(input.n_ranks) / input.n_nodes;
  return input.nvls.intra_bandwidth * reached *
         (collective == Collective::kAllReduce ? 2.0 : (ranks - 1) / ranks);
}

// Returns the factor by which an AllReduce's algorithm bandwidth differs from its bus bandwidth: n / (2 (n -
// 1)).
double AllReduceShare(const NcclModelInput& input) {
  return static_cast<double>(input.n_ranks) / RingSteps(input, Collective::kAllReduce);
}

// Returns the time of NVLS inside one node: the switch reduces and multicasts in one pass over all ranks'
// buffers.
ModelledTime NvlsTime(const NcclModelInput& input, Collective collective) {
  const double channel = std::min(NvlsChannelBandwidth(input, collective), input.nvls.inter_bandwidth);
  const double bus = input.nvls.channels * channel;
  return {.latency_us = At(input.constants.base_latency_us, Algorithm::kNvls, Protocol::kSimple) +
                        At(input.constants.intra_latency_us, Algorithm::kNvls, Protocol::kSimple),
          .bandwidth_gbps = collective == Collective::kAllReduce ? bus * AllReduceShare(input) : bus};
}

// Returns the time of NVLSTree: NVLS inside each node and a tree between nodes. With two nodes a channel uses
// the network in both directions.
ModelledTime NvlsTreeTime(const NcclModelInput& input) {
  const double across = input.nvls.inter_bandwidth * (input.n_nodes <= 2 ? 2 : 1);
  const double channel = std::min(
      {NvlsChannelBandwidth(input, Collective::kAllReduce), across, input.nvls_tree_channel_bandwidth});
  const double hops = 2.0 * FloorLog2(static_cast<uint64_t>(input.n_nodes));
  return {.latency_us = At(input.constants.base_latency_us, Algorithm::kNvlsTree, Protocol::kSimple) +
                        At(input.constants.intra_latency_us, Algorithm::kNvlsTree, Protocol::kSimple) +
                        hops * InterHop(input, Algorithm::kNvlsTree, Protocol::kSimple),
          .bandwidth_gbps = input.nvls.channels * channel * AllReduceShare(input)};
}

// Returns the share of the bandwidth that a call of this size reaches; 1 if NCCL has no correction. The
// table's last entry holds for NVLSTree only.
double ShareBySize(const NcclModelInput& input, uint64_t bytes, Algorithm algorithm, Protocol protocol) {
  const int size_log = FloorLog2(bytes >> 6);
  // The table's last entry holds for NVLSTree only.
  const bool tree = input.tree_corrected && algorithm == Algorithm::kTree && size_log < kTreeCorrections - 1;
  const bool nvls_tree =
      input.nvls_tree_corrected && algorithm == Algorithm::kNvlsTree && size_log < kTreeCorrections;
  return tree || nvls_tree ? kTreeCorrection[static_cast<size_t>(protocol)][size_log] : 1.0;
}

// Returns the factor on the latency of larger messages within a node of Blackwell GPUs, from 2.31 on. It
// approaches plateau_factor with each step of the ring, and three quarters of the increase remain for the
// largest messages. The rule was read off the tables that 2.32.3 computes for 2, 4 and 8 ranks.
double NodePlateau(const NcclModelInput& input, Collective collective, uint64_t lane_bytes) {
  constexpr uint64_t kLargeLane = 512 << 10;
  double missing = 1;
  for (int step = 1; step < RingSteps(input, collective) && missing > 0; ++step) missing /= 4;
  return 1 + (input.plateau_factor - 1) * (1 - missing) * (lane_bytes >= kLargeLane ? 0.75 : 1.0);
}

// Returns the factor that NCCL calls "plateau effect": it raises the latency of larger messages over rings.
double Plateau(const NcclModelInput& input, Collective collective, uint64_t bytes, Algorithm algorithm,
               Protocol protocol) {
  const bool copies = collective == Collective::kBroadcast || collective == Collective::kReduce;
  if (algorithm != Algorithm::kRing || protocol != Protocol::kSimple || copies) return 1;
  const uint64_t lane_bytes = bytes / std::max<uint64_t>(1, static_cast<uint64_t>(input.channels) *
                                                                static_cast<uint64_t>(input.n_ranks));
  if (lane_bytes < 64) return 1;
  if (input.n_nodes == 1) return input.node_plateau ? NodePlateau(input, collective, lane_bytes) : 1;
  return collective == Collective::kAllReduce ? input.plateau_factor : 1;
}

}  // namespace

ModelledTime BaseTime(const NcclModelInput& input, Collective collective, Algorithm algorithm,
                      Protocol protocol) {
  const bool one_rank_a_node = input.n_nodes > 1 && input.n_ranks == input.n_nodes;
  if (!NcclConfigs(collective).test(ConfigIndex(algorithm, protocol)) || input.n_ranks < 2) return {};
  if (algorithm == Algorithm::kRing) return RingTime(input, collective, protocol);
  if (algorithm == Algorithm::kTree) return TreeTime(input, protocol);
  if (algorithm == Algorithm::kPat && one_rank_a_node) return PatTime(input);
  const bool multicast = input.nvls.channels > 0;
  if (algorithm == Algorithm::kNvls && multicast && input.n_nodes == 1) return NvlsTime(input, collective);
  if (algorithm == Algorithm::kNvlsTree && multicast && input.n_nodes > 1 && !one_rank_a_node) {
    return NvlsTreeTime(input);
  }
  return {};
}

double ModelTime(const NcclModelInput& input, Collective collective, uint64_t bytes, int n_pipe_ops,
                 Algorithm algorithm, Protocol protocol) {
  ModelledTime time = BaseTime(input, collective, algorithm, protocol);
  if (time.bandwidth_gbps <= 0) return -1;
  time.bandwidth_gbps *= ShareBySize(input, bytes, algorithm, protocol);
  time.latency_us *= Plateau(input, collective, bytes, algorithm, protocol);
  const int batches = algorithm == Algorithm::kRing
                          ? n_pipe_ops
                          : (n_pipe_ops + kBatchedCollectives - 1) / kBatchedCollectives;
  return time.latency_us * batches + static_cast<double>(bytes) / (1000 * time.bandwidth_gbps);
}

}  // namespace dynamiccl
