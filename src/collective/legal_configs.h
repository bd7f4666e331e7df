// SPDX-License-Identifier: Apache-2.0
// The (algorithm, protocol) pairs that NCCL has for a collective, bit masks of such pairs, and the text form
// of configurations.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// A set of (algorithm, protocol) pairs; the pair's bit is number ConfigIndex(algorithm, protocol). Masks say
// what NCCL offers on a communicator. Ranks exchange and intersect their masks.
using ConfigMask = std::bitset<kAlgorithms * kProtocols>;

constexpr size_t ConfigIndex(Algorithm algorithm, Protocol protocol) {
  return static_cast<size_t>(algorithm) * kProtocols + static_cast<size_t>(protocol);
}

// Returns the pairs of algorithm and protocol for which NCCL 2.30 to 2.32 has kernels; none for
// point-to-point operations. A communicator offers a subset of them, which depends on the topology.
ConfigMask NcclConfigs(Collective collective);

// Returns for example "Tree:LL,Simple Ring:LL,LL128,Simple", and "nothing" for an empty mask. The text has at
// most 128 characters for masks that NcclConfigs returned.
std::string Describe(const ConfigMask& mask);

// Returns for example "Ring/LL128/4", and "-" for a configuration that leaves the call to NCCL.
std::string Describe(const CollectiveConfig& config);
// Reads a text that Describe wrote, in any case. Without a channel count ("ring/ll128") `channels` is 0.
// Returns nullopt for any other text, and for "-".
std::optional<CollectiveConfig> ParseConfig(std::string_view text);

// Returns every allowed pair of algorithm and protocol with 1, 2, 4, 8, ... channels below `max_channels` and
// with `max_channels` itself, which must be from 1 to 255. Sweeps time these configurations.
std::vector<CollectiveConfig> EnumerateConfigs(const ConfigMask& allowed, int max_channels);

}  // namespace dynamiccl
