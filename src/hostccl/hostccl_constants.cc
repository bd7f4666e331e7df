// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/hostccl_constants.h"

namespace dynamiccl::hostccl {
namespace {

// The model is used without NCCL's corrections for GPU clusters (CostModelInput::gpu_corrections): they were
// measured there, no calibration of hostccl shows them, and two of them made its default wrong (LL for 16K
// between nodes, Ring where a tree moves less: docs/results/hostccl-map.md).
//
// Calibrated once, from two message sizes and two step counts, on two ranks of one node without shaping (2
// cores of an AMD EPYC virtual machine, 2026-11-21): the smallest samples of AllGather and AllReduce at 1K
// and 4M under Ring with one channel and each protocol. AllGather takes one step, AllReduce two, so
//   hop = t(AllReduce, 1K) - t(AllGather, 1K) and base = 2 t(AllGather, 1K) - t(AllReduce, 1K),
// and the bandwidths are those of 4M. The machine was busy then: on a quiet one Simple is faster (4M at 11 to
// 23 GB/s), LL as here. Nothing is fitted to a table of winners: where the model is wrong about hostccl, the
// default is, too.
//
// `hostccl_calibration two-point` prints such lines from a sweep (docs/hostccl_calibration.md). The slots of
// which no line was measured yet, the one-pass algorithms (NVLS, NVLSTree) and PAT, have the costs of a
// Ring/Simple hop.
struct SoftwareCost {
  Algorithm algorithm;
  Protocol protocol;
  double base_us;
  double hop_us;  // without the link's own latency
};
constexpr SoftwareCost kSoftwareCosts[] = {
    {Algorithm::kTree, Protocol::kLL, 2.9, 4.7},     {Algorithm::kTree, Protocol::kLL128, 2.9, 4.0},
    {Algorithm::kTree, Protocol::kSimple, 2.9, 4.1},  // 7.0 us for one step, 11.1 us for two
    {Algorithm::kRing, Protocol::kLL, 2.9, 4.7},      // 7.3 and 12.0 us, whose base is 2.6
    {Algorithm::kRing, Protocol::kLL128, 2.9, 4.0},  {Algorithm::kRing, Protocol::kSimple, 2.9, 4.1},
    {Algorithm::kNvls, Protocol::kSimple, 2.9, 4.1}, {Algorithm::kNvlsTree, Protocol::kSimple, 2.9, 4.1},
    {Algorithm::kPat, Protocol::kSimple, 2.9, 4.1},
};
constexpr double kLLGbps = 1.3;       // one core stores and compares 8 bytes for every 4 of data
constexpr double kChannelGbps = 5.1;  // one channel already fills what two cores copy and add
constexpr double kLL128Gbps = 4.8;    // 120 bytes of data in a line of 128

}  // namespace

ConfigMask SupportedConfigs(Collective collective) {
  ConfigMask mask;
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      mask.set(ConfigIndex(algorithm, protocol));
    }
  }
  mask.set(ConfigIndex(Algorithm::kPat, Protocol::kSimple));
  mask.set(ConfigIndex(Algorithm::kNvls, Protocol::kSimple));
  mask.set(ConfigIndex(Algorithm::kNvlsTree, Protocol::kSimple));
  return mask & NcclConfigs(collective);
}

CostModelInput HostcclModel(const Fabric& fabric) {
  CostModelInput input{.fabric = fabric, .gpu_corrections = false};
  for (const SoftwareCost& cost : kSoftwareCosts) {
    const auto a = static_cast<size_t>(cost.algorithm);
    const auto p = static_cast<size_t>(cost.protocol);
    input.constants.base_latency_us[a][p] = cost.base_us;
    input.constants.intra_latency_us[a][p] = cost.hop_us + fabric.intra.latency_us;
    input.constants.inter_latency_us[a][p] = cost.hop_us + fabric.inter.latency_us;
  }
  input.constants.ll_max_bandwidth = kLLGbps;
  input.constants.ring_ll128_channel_bandwidth = kLL128Gbps;
  input.constants.tree_ll128_channel_bandwidth = kLL128Gbps;
  input.constants.tree_channel_bandwidth = kChannelGbps;
  return input;
}

}  // namespace dynamiccl::hostccl
