// SPDX-License-Identifier: Apache-2.0
// The calibrated costs of hostccl's algorithms.
//
// The model is used without NCCL's corrections for GPU clusters (CostModelInput::gpu_corrections). They were
// measured on GPU clusters, and no calibration of hostccl shows such effects. Two of the corrections made
// hostccl's default wrong: LL for 16K between nodes, and Ring where a tree moves fewer bytes
// (docs/results/hostccl-map.md).
#include "src/hostccl/hostccl_constants.h"

namespace dynamiccl::hostccl {
namespace {

// One row of the calibration, in microseconds. The command `dynamiccl-lab hostccl-calibration two-point`
// prints these rows (docs/hostccl_calibration.md) from the smallest of 200 samples. They were measured with
// two ranks of one node without emulated links, one channel and private buffers, on 2 cores of an Intel Xeon
// virtual machine that was otherwise idle, 2026-11-21.
//
// NVLSTree needs four ranks, so it has the hop of NVLS; PAT needs several nodes, so it has the hop of
// Ring/Simple. No constant is fitted to which algorithm was fastest in a sweep: where the model is wrong
// about hostccl, the default is too.
struct SoftwareCost {
  Algorithm algorithm;
  Protocol protocol;
  double base_us;
  double hop_us;  // software cost of one hop, without the link's latency
};
constexpr SoftwareCost kSoftwareCosts[] = {
    {Algorithm::kTree, Protocol::kLL, 1.27, 0.21},     {Algorithm::kTree, Protocol::kLL128, 1.03, 0.48},
    {Algorithm::kTree, Protocol::kSimple, 0.95, 0.79}, {Algorithm::kRing, Protocol::kLL, 1.27, 0.27},
    {Algorithm::kRing, Protocol::kLL128, 1.03, 0.53},  {Algorithm::kRing, Protocol::kSimple, 0.95, 0.58},
    {Algorithm::kNvls, Protocol::kSimple, 0.95, 0.67}, {Algorithm::kNvlsTree, Protocol::kSimple, 0.95, 0.67},
    {Algorithm::kPat, Protocol::kSimple, 0.95, 0.58},
};
// Bandwidths from the same calibration over one channel, in 1e9 bytes per second: of Ring/LL, Ring/LL128 and
// Tree/Simple.
constexpr double kLLGbps = 2.78;
constexpr double kLL128Gbps = 4.51;
constexpr double kChannelGbps = 11.5;

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
