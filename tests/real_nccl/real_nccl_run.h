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

using Environment = std::map<std::string, std::string>;

struct RunRequest {
  std::string nccl_folder;     // holds libnccl.so.2
  std::string scratch_folder;  // for the topology file and the output; must exist
  int nodes = 2;
  int ranks_per_node = 8;
  std::vector<size_t> bytes;  // NCCL's total of each call
  std::string preloaded;      // object loaded into the job beside the stand-in, or empty
  Environment environment;    // added to the clean environment that every run gets

  int ranks() const { return nodes * ranks_per_node; }
};

struct RunOutcome {
  int exit_code = -1;
  std::string output;
  std::vector<TuningLine> choices;
};

// All ranks as threads of one process; at most 60 s. The environment holds nothing of the caller's.
RunOutcome RunDriver(const RunRequest& request);

// One process a rank, each with an environment of its own besides: as many as the request has ranks.
std::vector<RunOutcome> RunDriverProcesses(const RunRequest& request, const std::vector<Environment>& own);

}  // namespace dynamiccl::real_nccl
