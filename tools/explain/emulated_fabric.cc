// SPDX-License-Identifier: Apache-2.0
// Computes the fabric with the functions that hostccl's communicators use.
#include "tools/explain/emulated_fabric.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "src/hostccl/hostccl_constants.h"
#include "src/transport/emulated_links.h"

namespace dynamiccl {
namespace {

// Channels of a communicator where HOSTCCL_CHANNELS does not say otherwise.
constexpr int kDefaultChannels = 8;

int PlacesOf(const Topology& topology) {
  const std::vector<int>& places = topology.ranks_per_node;
  if (places.empty()) return std::max(2, topology.nodes);
  const int listed = std::accumulate(places.begin(), places.end(), 0);
  return places.size() == 1 ? listed * topology.nodes : listed;
}

}  // namespace

Result<MeasurementContext> EmulatedFabric(const std::string& name_or_path, int n_ranks) {
  DYNAMICCL_TRY(const Topology topology, LoadTopology(name_or_path));
  if (n_ranks == 0) n_ranks = PlacesOf(topology);
  DYNAMICCL_TRY(const std::vector<int> nodes, topology.NodesOfRanks(n_ranks));
  std::vector<int> ranks(nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const Fabric fabric = EmulatedLinks(topology, nodes, nullptr).FabricOf(ranks, kDefaultChannels);
  return MeasurementContext{std::filesystem::path(name_or_path).stem().string(),
                            hostccl::HostcclModel(fabric)};
}

}  // namespace dynamiccl
