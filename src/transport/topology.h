// SPDX-License-Identifier: Apache-2.0
// The emulated machine: how many nodes, which rank is on which, and how fast the links are. Grammar:
// docs/formats/topology.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/transport/link_shape.h"
#include "src/transport/link_timeline.h"

namespace dynamiccl {

// More than the emulation is good for on one host.
inline constexpr int kMaxNodes = 1024;
// As many as there are channels: more could carry nothing.
inline constexpr int kMaxRails = 8;

struct LinkOverride {
  LinkTarget target;
  LinkChange change;
  friend bool operator==(const LinkOverride&, const LinkOverride&) = default;
};

struct Topology {
  int nodes = 1;
  std::vector<int> ranks_per_node;  // one number: of each node; as many as nodes: by node; none: evenly
  std::optional<LinkShape> intra;   // absent: as fast as shared memory is
  std::optional<LinkShape> inter;
  int rails = 1;                        // of every two nodes; each has the bandwidth of `inter`
  int64_t seed = 1;                     // of jitter and of bursts
  std::vector<LinkOverride> overrides;  // applied in order
  std::vector<LinkEvent> events;        // applied in order, over the overrides

  // The node of each rank: nodes are filled in order. An error when there are more ranks than places.
  Result<std::vector<int>> NodesOfRanks(int n_ranks) const;
  // From one node to another or to itself; nothing: not shaped. Without events.
  std::optional<LinkShape> Between(int from_node, int to_node, int rail) const;
  // The events that concern it, in order.
  std::vector<LinkEvent> EventsOf(int from_node, int to_node, int rail) const;
  int RailsBetween(int from_node, int to_node) const { return from_node == to_node ? 1 : rails; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

// A preset's name, the path of a file, or "" for one node without shaping.
Result<Topology> LoadTopology(const std::string& name_or_path);
// `source` names the text in errors. Unknown keys, missing keys and wrong values are errors with line and
// column.
Result<Topology> ParseTopology(std::string_view text, const std::string& source);
// A file that parses to the same topology.
std::string FormatTopology(const Topology& topology);

struct TopologyPreset {
  const char* name;
  const char* summary;
  Topology topology;
};
const std::vector<TopologyPreset>& TopologyPresets();

}  // namespace dynamiccl
