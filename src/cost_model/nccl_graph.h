// SPDX-License-Identifier: Apache-2.0
// What NCCL's search found on a machine for one algorithm: the attributes of a graph in the file of
// NCCL_GRAPH_DUMP_FILE, without the rings and trees of its channels.
#pragma once

#include <string>

namespace dynamiccl {

struct NcclGraph {
  int pattern = 0;        // NCCL_TOPO_PATTERN_*
  int channels = 0;       // 0: none was found
  double intra_gbps = 0;  // of one channel, inside a node and between nodes
  double inter_gbps = 0;
  double latency_us = 0;   // of the network
  std::string intra_type;  // worst kind of path: "NVL", "PIX", ...
  std::string inter_type;
  bool same_channels = false;

  bool operator==(const NcclGraph&) const = default;
};

}  // namespace dynamiccl
