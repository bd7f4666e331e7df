// SPDX-License-Identifier: Apache-2.0
// The result of one replay, as a table for people and as JSON for programs and for `--compare`.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {

// One replay over a library or in the simulator.
struct ReplayReport {
  // Name of the NCCL library, or of the simulated system.
  std::string library;
  int ranks = 0;
  bool paced = false;
  bool check = false;
  // OperationHash of what each rank issued, in the order of ranks. A replay over a library has only the hash
  // of rank 0.
  std::vector<std::string> operations;
  double wall_us = 0;
  // Number of elements that were checked.
  uint64_t checked = 0;
  uint64_t wrong = 0;
  std::vector<std::string> notes;
  std::vector<ReplayRow> rows;
};

// Writes an OperationHash as sixteen hexadecimal digits.
std::string OperationText(uint64_t hash);

// Returns the report as JSON, schema 1. The field "operations" is that of rank 0.
Json ToJson(const ReplayReport& report);
// Prints notes on standard error and the table on standard output.
void Print(const ReplayReport& report);

}  // namespace dynamiccl
