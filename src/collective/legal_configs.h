// SPDX-License-Identifier: Apache-2.0
// Which (algorithm, protocol) pairs NCCL has for a collective, and the mask of those allowed on a
// communicator.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// One bit per (algorithm, protocol), index algorithm * kProtocols + protocol.
using ConfigMask = std::bitset<kAlgorithms * kProtocols>;

constexpr size_t ConfigIndex(Algorithm algorithm, Protocol protocol) {
  return static_cast<size_t>(algorithm) * kProtocols + static_cast<size_t>(protocol);
}

// What NCCL has kernels for (facts: NCCL 2.30 to 2.32, table collective x algorithm x protocol); independent
// of topology.
ConfigMask NcclConfigs(Collective collective);

// "Tree:LL,Simple Ring:LL,LL128,Simple", "nothing" for an empty mask; at most 128 letters for masks of
// NcclConfigs.
std::string Describe(const ConfigMask& mask);

// "Ring/LL128/4"; "-" for leaving NCCL alone.
std::string Describe(const CollectiveConfig& config);
// The way back, in any case; without channels ("ring/ll128") they are NCCL's. Nullopt for anything else.
std::optional<CollectiveConfig> ParseConfig(std::string_view text);

// Every allowed config with channels in {1, 2, 4, 8, ...} up to `max_channels`, which is always included.
std::vector<CollectiveConfig> EnumerateConfigs(const ConfigMask& allowed, int max_channels);

}  // namespace dynamiccl
