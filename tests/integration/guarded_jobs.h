// SPDX-License-Identifier: Apache-2.0
// Runs tests/integration/guarded_job.cc in mode adaptive over hostccl. Reads the results of each run: the
// config of each call, who decided it, and how long the program waited for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/nccl_job_run.h"

namespace dynamiccl::testing {

struct GuardedJobOptions {
  std::string topology = "two-nodes-ethernet";
  int n_ranks = 4;
  int calls = 1200;
  std::string bytes = "65536,1048576,4194304";
  std::string policy = "Ring/LL";  // config that the policy prefers for every call; "none": no policy
  std::string policy_file;         // the job's policy, instead of one that prefers `policy`
  std::string timing = "1";        // DYNAMICCL_TIMES
  // Factors as in MODEL_TIMES of modelled_times.cc. If empty, the job uses the times of real kernels.
  std::string model;
  std::string release = "2.30";  // HOSTCCL_EMULATE; with a model, 2.22 means no profiler
  int sleep = 0;                 // with a model: calls sleep for this many times their modelled time
  bool keep = false;             // keep the files of all jobs
};

// One line of a decision log: "<communicator> <call> <collective> <bytes> <role> <config> <who> v<version>".
struct LoggedCall {
  uint64_t call = 0;
  uint64_t bytes = 0;
  std::string config;
  std::string who;
  uint32_t version = 0;

  // True if the call used the key's choice, so it was not a trial and not a sample.
  bool at_choice() const { return who != "trial" && who != "sample"; }
  bool Uses(const std::string& config_prefix) const {
    return who != "trial" && config.starts_with(config_prefix);
  }
};
// Reads whole lines only, because the log may still be written.
std::vector<LoggedCall> ReadDecisionLog(const std::string& path);

struct GuardedRun {
  bool ok = false;  // every rank ended well, and all decided alike
  std::vector<LoggedCall> log;
  std::vector<std::pair<uint64_t, double>> times;  // bytes, us
  std::string output;                              // of rank 0
};

std::map<uint64_t, double> MedianByBytes(const GuardedRun& run, size_t from);
double TotalMs(const GuardedRun& run);

class GuardedJobs {
 public:
  explicit GuardedJobs(const GuardedJobOptions& options);
  ~GuardedJobs();
  GuardedJobs(const GuardedJobs&) = delete;
  GuardedJobs& operator=(const GuardedJobs&) = delete;

  // The folder for the files of all runs.
  const std::string& folder() const { return folder_; }
  // The decision log of rank 0 in the latest run.
  std::string decision_log() const { return folder_ + "/decisions.0"; }

  // Run runs the job with the object and with this environment, based on Adaptive(). RunWithout runs it
  // without the object.
  GuardedRun Run(const Environment& environment, int calls) const;
  GuardedRun RunWithout(int calls) const;
  Environment Adaptive() const;

 private:
  GuardedRun Run(const Environment& more, int calls, bool preload) const;
  // Writes a policy that prefers the config `policy` of the options. Returns its path.
  std::string WritePolicy() const;

  const GuardedJobOptions options_;
  std::string folder_;
};

}  // namespace dynamiccl::testing
