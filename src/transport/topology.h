// SPDX-License-Identifier: Apache-2.0
// The emulated machine: how many nodes it has, which rank is on which node, and how fast the links are.
// docs/formats/topology.md has the grammar of the files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/transport/link_shape.h"
#include "src/transport/link_timeline.h"

namespace dynamiccl {

// Largest number of nodes. The emulation on one host is not useful for more.
inline constexpr int kMaxNodes = 1024;
// Largest number of rails between two nodes: the number of channels, because a further rail would carry
// nothing.
inline constexpr int kMaxRails = 8;

// Numbers of some links that differ from those of the link's class, from the start of the job on.
struct LinkOverride {
  LinkTarget target;
  LinkChange change;
  friend bool operator==(const LinkOverride&, const LinkOverride&) = default;
};

// This is a plain value that is read once and not changed afterwards. All ranks must have the same one.
struct Topology {
  int nodes = 1;
  // Number of ranks on each node. A single number applies to every node; an empty list spreads the ranks
  // evenly.
  std::vector<int> ranks_per_node;
  // Links inside a node and links between nodes. A class of links that is absent is as fast as shared memory.
  std::optional<LinkShape> intra;
  std::optional<LinkShape> inter;
  // Number of rails between every two nodes. Each rail has the bandwidth of `inter`.
  int rails = 1;
  int64_t seed = 1;                     // seed of jitter and of bursts
  std::vector<LinkOverride> overrides;  // applied in order
  std::vector<LinkEvent> events;        // applied in order, over the overrides

  // Returns the node of each rank. Nodes are filled in order. Returns kInvalidArgument when there are more
  // ranks than the nodes have room for.
  Result<std::vector<int>> NodesOfRanks(int n_ranks) const;
  // Returns the link from a node to another node or inside a node. Overrides are applied, events are not.
  // Returns nothing when the link is not emulated.
  std::optional<LinkShape> Between(int from_node, int to_node, int rail) const;
  // Returns the events that change this link, in the order of the file.
  std::vector<LinkEvent> EventsOf(int from_node, int to_node, int rail) const;
  int RailsBetween(int from_node, int to_node) const { return from_node == to_node ? 1 : rails; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Reads a topology: the name of a preset, the path of a file, or "" for one node without emulated links.
Result<Topology> LoadTopology(const std::string& name_or_path);
// Reads the text of a topology file; errors call it `source`. Unknown keys, missing keys and wrong values are
// errors with line and column.
Result<Topology> ParseTopology(std::string_view text, const std::string& source);
// Returns the text of a file that parses to the same topology.
std::string FormatTopology(const Topology& topology);

// A built-in topology with a name. topology_presets.cc says where its numbers come from.
struct TopologyPreset {
  const char* name;
  const char* summary;
  Topology topology;
};
const std::vector<TopologyPreset>& TopologyPresets();

}  // namespace dynamiccl
