// SPDX-License-Identifier: Apache-2.0
// What NCCL says of a communicator that it made, in its log and in the file of its graphs. The same in all
// releases.
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

// "... 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 4 p2p channels per peer"
// anywhere in the text; before 2.22 no word follows "nvls".
std::optional<LoggedChannels> ParseChannels(const std::string& text);

// Whose graph the one with this number in NCCL_GRAPH_DUMP_FILE is (NCCL src/init.cc); nothing for others.
std::optional<Algorithm> AlgorithmOfGraph(int id);

}  // namespace dynamiccl::real_nccl
