// SPDX-License-Identifier: Apache-2.0
// Reads from a log of NCCL (NCCL_DEBUG=INFO) what NCCL found for each communicator: topology, graphs,
// channels and cost table. The canary reads a user's log and the log of its own run by the same code, so that
// both can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/real_nccl/init_log.h"
#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl {

// One graph of NCCL's search, from SUBSYS GRAPH: "Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000,
// type NVL/PIX, sameChannels 0" and the lines of its channels ("0 : NET/0-0 GPU/0 GPU/1 NET/0-1") below.
struct LoggedGraph {
  int pattern = 0;     // NCCL_TOPO_PATTERN_*
  std::string search;  // text of the first line behind the pattern
  // The adapters of all channels, for example "NET/0-1". Empty if the log lacks the line of a channel.
  std::set<std::string> adapters;

  bool operator==(const LoggedGraph&) const = default;
};

// Holds one rank's findings about its node and its place in the channels. Members are empty if the log lacks
// them.
struct RankLog {
  std::map<std::string, int> links;           // of the node's topology without PCI: {"NVL[370.8]", 8}
  std::map<std::string, LoggedGraph> graphs;  // by name: "Ring", "Tree", "NVLS", a second one as "Tree 2"
  std::vector<std::string> trees;             // of each channel: "1/8/-1->0->-1"
  bool complete = false;                      // the log has the rank's line about its channels

  bool operator==(const RankLog&) const = default;
};

struct CommunicatorLog {
  int ranks = 0;                       // 0: the log lacks the line that begins the communicator
  int nodes = 0;                       // 0: not logged
  real_nccl::LoggedChannels channels;  // all 0: not logged
  std::map<int, RankLog> by_rank;      // only ranks whose lines are in the log
  std::map<int, std::string> rings;    // by channel, ranks in their order: "0 7 6 5 4 3 2 1"
  // NCCL's cost table: {"AllReduce Ring Simple", "131.6/204.8"}, latency in us and bandwidth in GB/s.
  std::map<std::string, std::string> expected;
  // The transports of the connections, {"NET", "P2P"}, and their adapters, the numbers in "via NET/IB/3".
  // Both are empty if the log has several communicators, because a connection's line does not name one.
  std::set<std::string> transports;
  std::set<std::string> adapters;

  bool has_all_ranks() const { return ranks > 0 && static_cast<int>(by_rank.size()) == ranks; }
  bool operator==(const CommunicatorLog&) const = default;
};

// Holds what the log of a whole job tells. A member is empty or 0 if the log does not tell it.
struct LoggedJob {
  std::optional<real_nccl::NcclRelease> release;
  std::vector<CommunicatorLog> communicators;    // in the order in which they begin
  std::map<std::string, std::string> variables;  // those that NCCL read from the environment
  int cut_lines = 0;                             // lines in which processes cut each other's text

  // Returns the communicator with this many ranks and nodes, or else one with this many ranks, or else the
  // largest. Null if the log has none.
  const CommunicatorLog* Find(int ranks, int nodes) const;
};

// Reads a log, which may be that of one rank or of several together. Text behind the last full line is
// ignored.
LoggedJob ReadNcclLog(const std::string& text);

}  // namespace dynamiccl
