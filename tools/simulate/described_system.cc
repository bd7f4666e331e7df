// SPDX-License-Identifier: Apache-2.0
// The table of described systems, and NCCL's constants for their links.
#include "tools/simulate/described_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/cost_model/cost_model.h"

namespace dynamiccl {
namespace {

constexpr std::array kSystems = {
    DescribedSystem{
        "dgx2", 16, 300, 12.5, 100,
        "ZeRO paper, sections 10.1 and 10.2: 300 GB/s NVSwitch, 12.5 GB/s a link between nodes, 800 Gbit/s "
        "a node"},
    DescribedSystem{"dgx2-all-links", 16, 300, 100, 100,
                    "the same, where one communicator uses all eight links of a node at once"},
    DescribedSystem{"dgx-a100", 8, 300, 200, 200,
                    "NVIDIA DGX A100 data sheet: NVLink 600 GB/s both ways, 8 x 200 Gbit/s"},
    DescribedSystem{"dgx-h100", 8, 450, 400, 400,
                    "NVIDIA DGX H100 data sheet: NVLink 900 GB/s both ways, 8 x 400 Gbit/s"},
};

// The number of channels that NCCL 2.28.9 gives two nodes of a DGX A100 or H100 (tests/real_nccl). The
// simulated times do not depend on it, since a path's bandwidth is that of all channels. NCCL's choice does,
// because NCCL's model limits the bandwidth of one channel.
constexpr int kChannels = 16;

// Share of a link's bandwidth that an algorithm and protocol reach in NCCL's model (src/graph/tuning.cc). LL
// sends a flag with every datum, LL128 one flag in sixteen, and trees lose bandwidth at their interior nodes.
double ShareOf(Algorithm algorithm, Protocol protocol) {
  if (algorithm == Algorithm::kPat) return 0.75;
  if (algorithm == Algorithm::kTree) {
    if (protocol == Protocol::kLL) return 0.92 / 3.8;
    return protocol == Protocol::kLL128 ? 0.92 * 120 / 128 : 0.92;
  }
  if (protocol == Protocol::kLL) return 0.5;
  return protocol == Protocol::kLL128 ? 0.92 : 1;
}

}  // namespace

std::span<const DescribedSystem> DescribedSystems() {
  return kSystems;
}

const DescribedSystem* FindDescribedSystem(std::string_view name) {
  const auto* const found = std::ranges::find(kSystems, name, &DescribedSystem::name);
  return found == std::end(kSystems) ? nullptr : &*found;
}

std::string DescribedSystemNames() {
  std::string text;
  for (const DescribedSystem& one : kSystems) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.name);
  return text;
}

Result<System> SystemNamed(const std::string& name) {
  const DescribedSystem* const described = FindDescribedSystem(name);
  if (described != nullptr) return SystemOf(*described);
  Result<System> read = ReadSystemFile(name);
  if (read || read.error().kind != ErrorKind::kNotFound) return read;
  return WithHint(MakeError(ErrorKind::kNotFound,
                            "system '{}' is neither a described one nor a file that can be read", name),
                  fmt::format("described: {}; `dynamiccl calibrate` writes files", DescribedSystemNames()));
}

System SystemOf(const DescribedSystem& described) {
  System system;
  system.name = described.name;
  system.source = described.source;
  system.ranks_per_node = described.ranks_per_node;
  system.max_channels = kChannels;
  const CostConstants constants = NcclHopperConstants(3);
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kPat}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      if (algorithm == Algorithm::kPat && protocol != Protocol::kSimple) continue;
      const auto a = static_cast<size_t>(algorithm), p = static_cast<size_t>(protocol);
      const double share = ShareOf(algorithm, protocol);
      system.path(algorithm, protocol) = {.base_us = constants.base_latency_us[a][p],
                                          .intra_hop_us = constants.intra_latency_us[a][p],
                                          .inter_hop_us = constants.inter_latency_us[a][p],
                                          .intra_gbps = share * described.intra_gbps,
                                          .inter_gbps = share * described.inter_gbps};
    }
  }
  // PAT's latencies follow NCCL's cost model: its table has 4 us for the local work of a step, but the model
  // counts 2.8 us for each rank and divides the latency between nodes by 3.5.
  PathCosts& pat = system.path(Algorithm::kPat, Protocol::kSimple);
  pat.intra_hop_us = 2.8;
  pat.inter_hop_us /= 3.5;
  return system;
}

}  // namespace dynamiccl
