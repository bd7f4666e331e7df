// SPDX-License-Identifier: Apache-2.0
// What one replay did, as a table for people and as JSON for programs and for `--compare`.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {

struct ReplayReport {
  std::string library;  // or the simulated system
  int ranks = 0;
  bool paced = false;
  bool check = false;
  std::vector<std::string> operations;  // OperationHash, rank 0's first; over a library rank 0's alone
  double wall_us = 0;
  uint64_t checked = 0;  // elements
  uint64_t wrong = 0;
  std::vector<std::string> notes;
  std::vector<ReplayRow> rows;
};

// Sixteen hexadecimal digits.
std::string OperationText(uint64_t hash);

// "operations" is rank 0's.
Json ToJson(const ReplayReport& report);
void Print(const ReplayReport& report);

}  // namespace dynamiccl
