// SPDX-License-Identifier: Apache-2.0
#include "src/transport/topology.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace dynamiccl {

Result<std::vector<int>> Topology::NodesOfRanks(int n_ranks) const {
  const int per_node = ranks_per_node > 0 ? ranks_per_node : (n_ranks + nodes - 1) / nodes;
  if (static_cast<int64_t>(per_node) * nodes < n_ranks) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "the topology has places for {} ranks ({} nodes x {}), not {}",
                  per_node * nodes, nodes, per_node, n_ranks),
        "start fewer ranks, or raise nodes or ranks_per_node in HOSTCCL_TOPOLOGY");
  }
  std::vector<int> node_of_rank(static_cast<size_t>(n_ranks));
  for (int rank = 0; rank < n_ranks; ++rank) node_of_rank[static_cast<size_t>(rank)] = rank / per_node;
  return node_of_rank;
}

std::optional<LinkParameters> Topology::Between(int from_node, int to_node) const {
  const auto fits = [&](const LinkOverride& override) {
    return override.from_node == from_node && override.to_node == to_node;
  };
  const auto found = std::find_if(overrides.rbegin(), overrides.rend(), fits);
  if (found != overrides.rend()) return found->link;
  return from_node == to_node ? intra : inter;
}

Result<Topology> LoadTopology(const std::string& name_or_path) {
  if (name_or_path.empty()) return Topology{};
  std::string names;
  for (const TopologyPreset& preset : TopologyPresets()) {
    if (name_or_path == preset.name) return preset.topology;
    names += std::string(names.empty() ? "" : ", ") + preset.name;
  }
  std::ifstream file(name_or_path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return WithHint(MakeError(ErrorKind::kNotFound, "topology '{}' is neither a preset nor a readable file",
                              name_or_path),
                    "presets: " + names);
  }
  return ParseTopology(text.str(), name_or_path);
}

}  // namespace dynamiccl
