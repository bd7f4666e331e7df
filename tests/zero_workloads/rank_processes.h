// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of dynamiccl-zero as processes, as torchrun would, and reads back what they reported.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/base/reserved_port.h"

namespace dynamiccl::zero {

// A temporary folder that the destructor removes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Launch {
  int ranks = 1;
  std::vector<std::string> arguments;              // arguments of dynamiccl-zero
  std::map<std::string, std::string> environment;  // for all ranks, added to the test's own
  std::map<int, std::map<std::string, std::string>> rank_environment;  // for single ranks
  // SIGALRM ends a rank that runs longer (exit code 142). So a test notices a hang.
  int timeout_seconds = 120;
  std::string preload;  // a library such as count_nccl.cc: see RankServer::With
};

struct RankOutcome {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string output;  // standard output and error
};

class RankProcesses {
 public:
  // Starts the ranks with torchrun's variables for rank and rendezvous. A single rank gets none of these
  // variables.
  explicit RankProcesses(const Launch& launch);
  // Kills the ranks that Wait() has not reaped.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  // Sends a signal to a rank before Wait(). Does nothing if the rank has already ended.
  void Kill(int rank, int signal);
  std::vector<RankOutcome> Wait();

 private:
  void Start(const Launch& launch, int rank);
  std::filesystem::path OutputPath(int rank) const { return folder_ / ("output." + std::to_string(rank)); }

  TemporaryFolder folder_;
  ReservedPort port_ = ReservedPort::Reserve().value();
  std::vector<pid_t> processes_;  // by rank; 0 once Wait() has reaped it
};

std::vector<RankOutcome> RunRanks(const Launch& launch);

// The memory of rank 0.
struct MemoryReport {
  std::map<std::string, int64_t> current, peak;  // bytes by category, including "total"
  int64_t activations_kept = 0;
};

// The report that a training run wrote with --json.
struct TrainingReport {
  std::vector<std::string> losses;  // as hexadecimal floats, so equal texts are equal bit for bit
  std::vector<double> bits_per_byte;
  std::vector<double> loss_scales, step_ms, comm_wait_ms;
  std::string parameters_sha256;
  double held_out_bits_per_byte = 0.0;
  std::vector<int64_t> live_bucket_bytes, live_prefetch;  // by step, with --live
  size_t skipped_steps = 0;                               // number of steps whose fp16 gradients overflowed
  MemoryReport memory;
  std::map<std::string, int64_t> host_memory;  // bytes: current, peak, to_device_bytes, to_host_bytes
};
TrainingReport ReadReport(const std::filesystem::path& json);

// Runs a training of a small model on the project's licence text. Expects exit code 0 of all ranks, and reads
// the report. `arguments` replace those of the small model.
TrainingReport TrainSmall(int ranks, const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {},
                          const std::string& preload = "");
// Returns the arguments of the small model.
std::vector<std::string> SmallModel();

}  // namespace dynamiccl::zero
