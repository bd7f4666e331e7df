// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/hostccl_constants.h"

namespace dynamiccl::hostccl {
namespace {

// Calibrated once, from two message sizes and two step counts, on two ranks of one node without shaping (2
// cores of an AMD EPYC virtual machine, 2026-11-21): the smallest samples of AllGather and AllReduce at 1K
// and 4M under Ring with one channel and each protocol. AllGather takes one step, AllReduce two, so
//   hop = t(AllReduce, 1K) - t(AllGather, 1K) and base = 2 t(AllGather, 1K) - t(AllReduce, 1K),
// and the bandwidths are those of 4M. The machine was busy then: on a quiet one Simple is faster (4M at 11 to
// 23 GB/s), LL as here. Nothing is fitted to a table of winners: where the model is wrong about hostccl, the
// default is, too.
constexpr double kBaseUs = 2.9;  // Simple 7.0 and 11.1 us; LL 7.3 and 12.0 us, whose base is 2.6
constexpr double kSimpleHopUs = 4.1;
constexpr double kLLHopUs =
    4.7;  // flags are checked line by line, and shared memory has no faster path for them
constexpr double kLLGbps = 1.3;       // one core stores and compares 8 bytes for every 4 of data
constexpr double kChannelGbps = 5.1;  // one channel already fills what two cores copy and add

}  // namespace

ConfigMask SupportedConfigs(Collective collective) {
  ConfigMask mask;
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple})
      mask.set(ConfigIndex(algorithm, protocol));
  }
  return mask & NcclConfigs(collective);
}

CostModelInput HostcclModel(const Fabric& fabric) {
  CostModelInput input{.fabric = fabric};
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
      const auto a = static_cast<size_t>(algorithm);
      const auto p = static_cast<size_t>(protocol);
      const double hop = protocol == Protocol::kLL ? kLLHopUs : kSimpleHopUs;
      input.constants.base_latency_us[a][p] = kBaseUs;
      input.constants.intra_latency_us[a][p] = hop + fabric.intra.latency_us;
      input.constants.inter_latency_us[a][p] = hop + fabric.inter.latency_us;
    }
  }
  input.constants.ll_max_bandwidth = kLLGbps;
  input.constants.tree_channel_bandwidth = kChannelGbps;
  return input;
}

}  // namespace dynamiccl::hostccl
