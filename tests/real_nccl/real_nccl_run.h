// SPDX-License-Identifier: Apache-2.0
// Runs the driver on an unmodified libnccl.so.2 over the stand-in, and hands back what NCCL said.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/real_nccl/tuning_log.h"

namespace dynamiccl::real_nccl {

// Where tools/setup/fetch_nccl.sh put the library of a release, or nothing when it has not been fetched.
std::optional<std::string> FindNcclLibraryFolder(const std::string& version);

struct RunRequest {
  std::string nccl_folder;                         // holds libnccl.so.2
  std::string scratch_folder;                      // for the topology file; must exist
  std::vector<size_t> bytes;                       // NCCL's total of each call
  std::string preloaded;                           // object loaded into the job beside the stand-in, or empty
  std::map<std::string, std::string> environment;  // added to the clean environment that every run gets
};

struct RunOutcome {
  int exit_code = -1;
  std::string output;
  std::vector<TuningLine> choices;
};

// 2 nodes of 8 ranks; at most 60 s. The environment holds nothing of the caller's.
inline constexpr int kNodes = 2;
inline constexpr int kRanksPerNode = 8;
inline constexpr int kRanks = kNodes * kRanksPerNode;
RunOutcome RunDriver(const RunRequest& request);

}  // namespace dynamiccl::real_nccl
