// SPDX-License-Identifier: Apache-2.0
#include "tools/report/one_topology.h"

#include <set>

namespace dynamiccl {

Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source) {
  std::set<std::string> topologies;
  for (const SweepCell& cell : cells)
    if (wanted.empty() || cell.topology == wanted) topologies.insert(cell.topology);
  if (topologies.size() == 1) return *topologies.begin();
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: {} topologies to take times from", source,
                            topologies.size()),
                  "name one with --measured-topology");
}

}  // namespace dynamiccl
