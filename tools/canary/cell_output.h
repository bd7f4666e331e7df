// SPDX-License-Identifier: Apache-2.0
// Reads what a run of the driver left behind: NCCL's log with the driver's lines, its graphs and its costs.
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

// All of the cell but seconds and stacks.
Cell ReadCell(const CellRequest& request, const CellFiles& files);

// The connection that a line of NCCL's log reports: "... [send] via NET/Described/3(0)/GDRDMA" is {"NET",
// "3"},
// "... via P2P/CUMEM" is {"P2P", ""}. Empty for other lines.
std::pair<std::string, std::string> ConnectionOf(std::string_view line);

// Functions of NCCL in which the threads of gdb's "thread apply all backtrace" stand: for each thread the
// three innermost whose names begin with "nccl" or "bootstrap", "bootstrapRecv < ncclTransportP2pSetup <
// ncclNvlsTreeConnect", and how many threads stand so. Sockets and NCCL's service threads are left out.
std::map<std::string, int> StacksOf(const std::string& backtraces);

}  // namespace dynamiccl
