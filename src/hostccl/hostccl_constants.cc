// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/hostccl_constants.h"

namespace dynamiccl::hostccl {
namespace {

constexpr double kBaseUs = 20;
constexpr double kHopUs = 4;
constexpr double kSimpleHopUs = 6;
constexpr double kLLGbps = 1.5;
constexpr double kChannelGbps = 3;

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
      const double hop = protocol == Protocol::kLL ? kHopUs : kSimpleHopUs;
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
