// SPDX-License-Identifier: Apache-2.0
// The emulated machine: how many nodes, which rank is on which, and how fast the links are. Grammar:
// docs/formats/topology.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/collective/fabric.h"

namespace dynamiccl {

struct LinkOverride {
  int from_node = 0;
  int to_node = 0;
  LinkParameters link;
};

struct Topology {
  int nodes = 1;
  int ranks_per_node = 0;               // 0: the ranks are spread evenly over the nodes
  std::optional<LinkParameters> intra;  // absent: as fast as shared memory is
  std::optional<LinkParameters> inter;
  std::vector<LinkOverride> overrides;  // one direction each; the last one that fits wins

  // The node of each rank: rank / ranks per node. An error when there are more ranks than places.
  Result<std::vector<int>> NodesOfRanks(int n_ranks) const;
  // From one node to another or to itself; nothing: not shaped.
  std::optional<LinkParameters> Between(int from_node, int to_node) const;
};

// A preset's name, the path of a file, or "" for one node without shaping.
Result<Topology> LoadTopology(const std::string& name_or_path);
// `source` names the text in errors. Unknown keys, missing keys and wrong values are errors with line and
// column.
Result<Topology> ParseTopology(std::string_view text, const std::string& source);

struct TopologyPreset {
  const char* name;
  const char* summary;
  Topology topology;
};
const std::vector<TopologyPreset>& TopologyPresets();

}  // namespace dynamiccl
