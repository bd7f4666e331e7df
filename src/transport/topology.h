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

// More nodes than the emulation is useful for on one host.
inline constexpr int kMaxNodes = 1024;
// At most as many rails as channels, because a further rail would carry nothing.
inline constexpr int kMaxRails = 8;

// Other numbers for some links, from the start on.
struct LinkOverride {
  LinkTarget target;
  LinkChange change;
  friend bool operator==(const LinkOverride&, const LinkOverride&) = default;
};

// This is a plain value that is read once and not changed afterwards. All ranks must have the same one.
struct Topology {
  int nodes = 1;
  // Ranks of each node. One number counts for every node; an empty list spreads the ranks evenly.
  std::vector<int> ranks_per_node;
  // Links inside a node and between nodes; an absent class is as fast as shared memory.
  std::optional<LinkShape> intra;
  std::optional<LinkShape> inter;
  // Rails between every two nodes; each has the bandwidth of `inter`.
  int rails = 1;
  int64_t seed = 1;                     // of jitter and of bursts
  std::vector<LinkOverride> overrides;  // applied in order
  std::vector<LinkEvent> events;        // applied in order, over the overrides

  // Returns the node of each rank; nodes are filled in order. kInvalidArgument when there are more ranks than
  // places.
  Result<std::vector<int>> NodesOfRanks(int n_ranks) const;
  // Returns the link from a node to another one or to itself, with overrides and without events. Nothing when
  // it is not shaped.
  std::optional<LinkShape> Between(int from_node, int to_node, int rail) const;
  // The events that concern this link, in order.
  std::vector<LinkEvent> EventsOf(int from_node, int to_node, int rail) const;
  int RailsBetween(int from_node, int to_node) const { return from_node == to_node ? 1 : rails; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Reads a topology: the name of a preset, the path of a file, or "" for one node without shaping.
Result<Topology> LoadTopology(const std::string& name_or_path);
// `source` names the text in errors. Unknown keys, missing keys and wrong values are errors with line and
// column.
Result<Topology> ParseTopology(std::string_view text, const std::string& source);
// A file that parses to the same topology.
std::string FormatTopology(const Topology& topology);

// A topology that is built in under a name; topology_presets.cc says where its numbers come from.
struct TopologyPreset {
  const char* name;
  const char* summary;
  Topology topology;
};
const std::vector<TopologyPreset>& TopologyPresets();

}  // namespace dynamiccl
