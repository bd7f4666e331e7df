// SPDX-License-Identifier: Apache-2.0
// Places ranks on nodes, looks up links, and loads topologies. See topology.h.
#include "src/transport/topology.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "src/base/file_kind.h"

namespace dynamiccl {

namespace {

// Returns how many ranks each node has room for, for a job of this many ranks.
std::vector<int> Places(const Topology& topology, int n_ranks) {
  if (topology.ranks_per_node.size() > 1) return topology.ranks_per_node;
  const int each = topology.ranks_per_node.empty() ? (n_ranks + topology.nodes - 1) / topology.nodes
                                                   : topology.ranks_per_node.front();
  return std::vector<int>(static_cast<size_t>(topology.nodes), each);
}

}  // namespace

Result<std::vector<int>> Topology::NodesOfRanks(int n_ranks) const {
  std::vector<int> node_of_rank;
  const std::vector<int> places = Places(*this, n_ranks);
  int64_t sum = 0;
  for (size_t node = 0; node < places.size(); ++node) {
    sum += places[node];
    const auto filled = static_cast<size_t>(std::min<int64_t>(sum, n_ranks));
    node_of_rank.resize(filled, static_cast<int>(node));
  }
  if (sum >= n_ranks) return node_of_rank;
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "the topology has places for {} ranks on {} nodes, not {}", sum, nodes, n_ranks),
                  "start fewer ranks, or raise nodes or ranks_per_node in HOSTCCL_TOPOLOGY");
}

std::optional<LinkShape> Topology::Between(int from_node, int to_node, int rail) const {
  std::optional<LinkShape> shape = from_node == to_node ? intra : inter;
  for (const LinkOverride& override : overrides) {
    if (!override.target.Fits(from_node, to_node, rail)) continue;
    if (!shape) shape = LinkShape{};
    override.change.ApplyTo(*shape);
  }
  return shape;
}

std::vector<LinkEvent> Topology::EventsOf(int from_node, int to_node, int rail) const {
  std::vector<LinkEvent> found;
  for (const LinkEvent& event : events) {
    if (event.target.Fits(from_node, to_node, rail)) found.push_back(event);
  }
  return found;
}

Result<Topology> LoadTopology(const std::string& name_or_path) {
  if (name_or_path.empty()) return Topology{};
  std::string names;
  for (const TopologyPreset& preset : TopologyPresets()) {
    if (name_or_path == preset.name) return preset.topology;
    names += std::string(names.empty() ? "" : ", ") + preset.name;
  }
  DYNAMICCL_CHECK_OK(CheckIsFile(name_or_path));
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
