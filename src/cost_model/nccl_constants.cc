// SPDX-License-Identifier: Apache-2.0
// The constants of NCCL 2.30.7's model for Hopper GPUs: ncclTunerConstantsDefaults in src/graph/tuning.cc
// (Apache-2.0). Latencies are in microseconds, bandwidths in GB/s; each row lists LL, LL128 and Simple.
#include <algorithm>

#include "src/cost_model/cost_model.h"

namespace dynamiccl {
namespace {

void SetRow(double (&table)[kAlgorithms][kProtocols], Algorithm algorithm, double ll, double ll128,
            double simple) {
  double(&row)[kProtocols] = table[static_cast<size_t>(algorithm)];
  row[0] = ll;
  row[1] = ll128;
  row[2] = simple;
}

void SetLatencies(CostConstants& constants) {
  SetRow(constants.base_latency_us, Algorithm::kTree, 6.8, 14.0, 8.4);
  SetRow(constants.base_latency_us, Algorithm::kRing, 6.6, 14.0, 8.4);
  SetRow(constants.base_latency_us, Algorithm::kPat, 8.0, 8.0, 8.0);
  SetRow(constants.intra_latency_us, Algorithm::kTree, 0.6, 1.25, 4.0);
  SetRow(constants.intra_latency_us, Algorithm::kRing, 0.6, 1.9, 3.4);
  SetRow(constants.intra_latency_us, Algorithm::kCollnetDirect, 0, 0, 3.7);
  SetRow(constants.intra_latency_us, Algorithm::kCollnetChain, 0, 0, 2.8);
  SetRow(constants.intra_latency_us, Algorithm::kNvls, 0, 0, 25.0);
  SetRow(constants.intra_latency_us, Algorithm::kNvlsTree, 0, 0, 25.0);
  SetRow(constants.intra_latency_us, Algorithm::kPat, 0, 0, 4.0);
  SetRow(constants.inter_latency_us, Algorithm::kTree, 5.0, 8.5, 14.0);
  SetRow(constants.inter_latency_us, Algorithm::kRing, 2.7, 4.0, 14.0);
  SetRow(constants.inter_latency_us, Algorithm::kCollnetDirect, 0, 0, 31.0);
  SetRow(constants.inter_latency_us, Algorithm::kCollnetChain, 0, 0, 30.0);
  SetRow(constants.inter_latency_us, Algorithm::kNvls, 0, 0, 18.0);
  SetRow(constants.inter_latency_us, Algorithm::kNvlsTree, 0, 0, 20.9);
  SetRow(constants.inter_latency_us, Algorithm::kPat, 0, 0, 14.0);
}

}  // namespace

CostConstants NcclHopperConstants(int n_nodes) {
  // NCCL's tables have one column for one node, one for two nodes and one for more.
  const int scale = std::clamp(n_nodes, 1, 3) - 1;
  // Inside one node the row of llMaxBws for Hopper bounds LL. Between nodes the row for Intel processors
  // does, because the processors bound the network side.
  constexpr double kLLMax[3] = {141.0, 39.0, 20.4};
  constexpr double kTreeLL128[3] = {36.7, 36.7, 29.0};
  constexpr double kTree[3] = {38.7, 41.4, 36.0};
  CostConstants constants;
  SetLatencies(constants);
  constants.ll_max_bandwidth = kLLMax[scale];
  constants.ring_ll128_channel_bandwidth = 36.7;
  constants.tree_ll128_channel_bandwidth = kTreeLL128[scale];
  constants.tree_channel_bandwidth = kTree[scale];
  return constants;
}

}  // namespace dynamiccl
