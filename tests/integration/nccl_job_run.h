// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of tests/integration/nccl_job.cc as processes over hostccl, and collects their results.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dynamiccl::testing {

using Environment = std::map<std::string, std::string>;

struct JobOptions {
  int n_ranks = 2;
  std::string rounds = "3";  // a size's first call is left to NCCL
  std::vector<std::string> extras;
  bool preload = true;
  bool audit = false;                         // also load libdynamiccl-audit.so
  std::string also_preload;                   // an object preloaded behind ours
  Environment environment;                    // for all ranks; "%d" in a value is the job's folder
  std::map<int, Environment> environment_of;  // for single ranks, in addition
  std::vector<int> without_preload;           // ranks that do not load the object
  std::map<int, std::string> preload_of;      // for single ranks, instead of the object
  std::vector<std::string> under;             // a program and its arguments that run the rank
  unsigned seconds = 50;                      // a rank that hangs is ended after this time
};

struct JobResult {
  std::vector<int> exit_codes;
  std::vector<std::string> output;  // standard output and error of each rank
  std::string folder;               // kept until the test ends
  double seconds = 0;

  bool ok() const;
  std::string AllOutput() const;
  // Returns the text of a file in the folder; empty if there is none.
  std::string Text(const std::string& name) const;
};

JobResult RunJob(const JobOptions& options);

// Returns the lines of `text` that contain `what`.
std::vector<std::string> LinesWith(const std::string& text, const std::string& what);

}  // namespace dynamiccl::testing
