// SPDX-License-Identifier: Apache-2.0
// Finds out which hosts write an NCCL_DEBUG log. Private to its importer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/import/nccl_debug_lines.h"

namespace dynamiccl {

// Knows the hosts of the lines so far. The views that it returns are valid as long as the object.
class DebugHosts {
 public:
  // Returns the host of a piece. Text of another process may stand directly before the host's name, so a name
  // may be longer than the host's. If the name ends with a known host's name, that host is returned under two
  // conditions: this process is known to run on the host, and INIT lines do not show that the longer name
  // belongs to another rank. If a process `cut` in, both conditions are dropped.
  std::string_view Of(const DebugPiece& piece, bool cut);

 private:
  using Names = std::set<std::string, std::less<>>;
  using Process = std::tuple<std::string_view, int64_t, int32_t>;  // host as written, process, device

  bool AreOtherRanks(const Process& one, const Process& other) const;

  Names hosts_, texts_;                                       // texts_: other names that were written
  std::set<std::pair<std::string_view, int64_t>> processes_;  // host and id of each known process
  std::map<Process, std::map<uint64_t, int32_t>> ranks_;      // rank of each process, by communicator id
};

}  // namespace dynamiccl
