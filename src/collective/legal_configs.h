// SPDX-License-Identifier: Apache-2.0
// The (algorithm, protocol) pairs that NCCL has for a collective, masks of them, and the text form of
// configurations.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// One bit per pair, at ConfigIndex. Masks say what NCCL offers on a communicator; ranks exchange and
// intersect them.
using ConfigMask = std::bitset<kAlgorithms * kProtocols>;

constexpr size_t ConfigIndex(Algorithm algorithm, Protocol protocol) {
  return static_cast<size_t>(algorithm) * kProtocols + static_cast<size_t>(protocol);
}

// The pairs for which NCCL 2.30 to 2.32 has kernels, whatever the topology. Empty for point-to-point
// operations. What a communicator really offers is a subset.
ConfigMask NcclConfigs(Collective collective);

// Returns for example "Tree:LL,Simple Ring:LL,LL128,Simple", and "nothing" for an empty mask. At most 128
// characters for masks of NcclConfigs.
std::string Describe(const ConfigMask& mask);

// Returns for example "Ring/LL128/4", and "-" for leaving NCCL alone.
std::string Describe(const CollectiveConfig& config);
// Reads what Describe wrote, in any case. Without a channel count ("ring/ll128") channels is 0. Nullopt for
// anything else, "-" included.
std::optional<CollectiveConfig> ParseConfig(std::string_view text);

// Every allowed pair with channels 1, 2, 4, 8, ... below `max_channels` and with `max_channels` itself, which
// must be from 1 to 255. Sweeps time this list.
std::vector<CollectiveConfig> EnumerateConfigs(const ConfigMask& allowed, int max_channels);

}  // namespace dynamiccl
