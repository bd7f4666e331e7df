// SPDX-License-Identifier: Apache-2.0
// NCCL's own choice on a simulated system. See library_pick.h.
#include "src/simulator/library_pick.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Returns the path (algorithm and protocol) whose bandwidths are taken for those of the links.
const PathCosts& LinkPath(const System& system) {
  const PathCosts* best = &system.path(Algorithm::kRing, Protocol::kSimple);
  if (best->known()) return *best;
  for (const auto& row : system.paths) {
    for (const PathCosts& costs : row) {
      if (costs.intra_gbps > best->intra_gbps) best = &costs;
    }
  }
  return *best;
}

}  // namespace

ConfigMask KnownPaths(const System& system) {
  ConfigMask mask;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      if (system.path(algorithm, protocol).known()) mask.set(ConfigIndex(algorithm, protocol));
    }
  }
  return mask;
}

// Latencies of the links are left at 0: NCCL's constants contain them.
CostModelInput LibraryView(const System& system, int n_ranks, int n_nodes) {
  const PathCosts& links = LinkPath(system);
  CostModelInput view{.fabric = {.n_ranks = n_ranks, .n_nodes = n_nodes, .max_channels = system.max_channels},
                      .constants = NcclHopperConstants(n_nodes)};
  view.fabric.intra.bandwidth_gbps = links.intra_gbps;
  view.fabric.inter.bandwidth_gbps = links.inter_gbps > 0 ? links.inter_gbps : links.intra_gbps;
  return view;
}

CollectiveConfig LibraryPick(const System& system, Collective collective, uint64_t bytes, int n_ranks,
                             int n_nodes) {
  if (n_ranks < 2 || static_cast<int>(collective) >= kTunableCollectives) return kLeaveNcclAlone;
  const CostModelInput view = LibraryView(system, n_ranks, n_nodes);
  const ConfigMask allowed = KnownPaths(system) & NcclConfigs(collective);
  CollectiveConfig pick = CheapestConfig(EstimateCosts(view, collective, bytes, 1, allowed));
  if (pick.leaves_nccl_alone()) return pick;
  const int channels = DefaultChannels(view, collective, bytes, pick.algorithm, pick.protocol);
  pick.channels = static_cast<uint8_t>(std::min(channels, 255));
  return pick;
}

}  // namespace dynamiccl
