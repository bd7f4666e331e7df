// SPDX-License-Identifier: Apache-2.0
// The table of programs, and the shortest program.
#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

constexpr Program kPrograms[] = {
    {"collectives", RunCollectives},
    {"groups", RunGroups},
    {"communicators", RunCommunicators},
    {"configs", RunConfigs},
    {"nonblocking", RunNonBlocking},
    {"abort", RunAbort},
    {"capture", RunCapture},
    {"registered", RunRegistered, Newer("CommRegister")},
    {"windows", RunWindows, Newer("CommWindowRegister")},
    {"nccl_tests", RunNcclTests},
    {"process_group", RunProcessGroup},
    {"nccl2", RunNccl2, Newer("CommRegister")},
};

}  // namespace

const Program* FindProgram(std::string_view name) {
  for (const Program& row : kPrograms) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string ProgramNames() {
  std::string names;
  for (const Program& row : kPrograms) names.append(names.empty() ? "" : " ").append(row.name);
  return names;
}

void RunCollectives(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  for (uint64_t round = 0; round < rank.world().repeats; ++round) {
    for (const size_t bytes : rank.world().bytes) IssueAll(rank, communicator, rank.world().ranks(), bytes);
  }
  rank.ReportMemory();
  rank.Destroy(communicator);
}

}  // namespace real_nccl_driver
