// SPDX-License-Identifier: Apache-2.0
// Result of NCCL's topology search for one algorithm, as a plain structure.
#pragma once

#include <string>

namespace dynamiccl {

// The attributes of one graph in the file of NCCL_GRAPH_DUMP_FILE, without the rings and trees of its
// channels. Bandwidths are those of one channel, in GB/s.
struct NcclGraph {
  int pattern = 0;             // NCCL_TOPO_PATTERN_*
  int channels = 0;            // 0: the search found none
  double intra_gbps = 0;       // bandwidth inside a node
  double inter_gbps = 0;       // bandwidth between nodes
  double latency_us = 0;       // latency of the network
  std::string intra_type;      // worst kind of path inside a node: "NVL", "PIX", ...
  std::string inter_type;      // worst kind of path between nodes
  bool same_channels = false;  // all channels use the same ring or tree

  bool operator==(const NcclGraph&) const = default;
};

}  // namespace dynamiccl
