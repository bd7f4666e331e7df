// SPDX-License-Identifier: Apache-2.0
// Reads what NCCL reports of a communicator that it made, in its log and in the file of its graphs. All
// releases report the same facts.
#pragma once

#include <optional>
#include <string>

#include "src/collective/algorithm.h"

namespace dynamiccl::real_nccl {

struct LoggedChannels {
  int collective = 0;
  int nvls = 0;
  int p2p = 0;
  int p2p_per_peer = 0;

  bool operator==(const LoggedChannels&) const = default;
};

// Finds "... 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 4 p2p channels per
// peer" anywhere in the text. Before 2.22 the word "channels" is missing after "nvls".
std::optional<LoggedChannels> ParseChannels(const std::string& text);

// Returns the algorithm whose graph has this number in NCCL_GRAPH_DUMP_FILE (NCCL src/init.cc). Returns
// nothing for other numbers.
std::optional<Algorithm> AlgorithmOfGraph(int id);

}  // namespace dynamiccl::real_nccl
