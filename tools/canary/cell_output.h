// SPDX-License-Identifier: Apache-2.0
// Reads the files that a run of the driver wrote: NCCL's log with the driver's own lines, NCCL's graphs and
// its tables of costs.
#pragma once

#include <string>

#include "tools/canary/cell.h"

namespace dynamiccl {

struct CellFiles {
  std::string log;
  std::string graphs;   // text of NCCL_GRAPH_DUMP_FILE
  std::string tables;   // path of the table tuner's file
  int exit_status = 0;  // as waitpid gives it
  bool limit_passed = false;
};

// Reads the files of one run and fills all members of the result except `seconds` and `stacks`.
Cell ReadCell(const CellRequest& request, const CellFiles& files);

// Returns (transport, adapter) of the connection that a line of NCCL's log reports. "... [send] via
// NET/Described/3(0)/GDRDMA" gives {"NET", "3"}, "... via P2P/CUMEM" gives {"P2P", ""}. Both are empty for
// other lines.
std::pair<std::string, std::string> ConnectionOf(std::string_view line);

// Counts the threads of a hung process by their stack in NCCL. `backtraces` is what gdb prints for "thread
// apply all backtrace". A stack is named by its three innermost functions whose names begin with "nccl" or
// "bootstrap": "bootstrapRecv < ncclTransportP2pSetup < ncclNvlsTreeConnect". NCCL's service threads and
// functions that wait for sockets are left out.
std::map<std::string, int> StacksOf(const std::string& backtraces);

}  // namespace dynamiccl
