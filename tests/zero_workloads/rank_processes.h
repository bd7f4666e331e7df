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
  std::vector<std::string> arguments;              // of dynamiccl-zero
  std::map<std::string, std::string> environment;  // added to the test's own, on every rank
  std::map<int, std::map<std::string, std::string>> rank_environment;  // of single ranks, on top
  // A rank that runs longer ends by SIGALRM (exit code 142), which is how a test sees a hang.
  int timeout_seconds = 120;
  std::string preload;  // a library in front of the program's, such as count_nccl.cc: see RankServer::With
};

struct RankOutcome {
  int exit_code = -1;  // 128 + signal where a signal ended it
  std::string output;  // standard output and error
};

class RankProcesses {
 public:
  // Starts the ranks with torchrun's variables for rank and rendezvous; a single rank gets none of them.
  explicit RankProcesses(const Launch& launch);
  // Kills the ranks that Wait() has not reaped.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  // Sends a signal to a rank before Wait(). A rank that has ended already ignores it.
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
  std::map<std::string, int64_t> current, peak;  // bytes by category, "total" among them
  int64_t activations_kept = 0;
};

// The report that a training run wrote with --json.
struct TrainingReport {
  std::vector<std::string> losses;  // as hexadecimal floats: equal text is equal to the bit
  std::vector<double> bits_per_byte;
  std::vector<double> loss_scales, step_ms, comm_wait_ms;
  std::string parameters_sha256;
  double held_out_bits_per_byte = 0.0;
  std::vector<int64_t> live_bucket_bytes, live_prefetch;  // by step, with --live
  size_t skipped_steps = 0;  // steps whose fp16 gradients overflowed, so that no parameter changed
  MemoryReport memory;
  std::map<std::string, int64_t> host_memory;  // bytes: current, peak, to_device_bytes, to_host_bytes
};
TrainingReport ReadReport(const std::filesystem::path& json);

// Runs a training of a small model on the project's licence text, expects exit code 0 of all ranks, and reads
// the report. Later arguments win over the small model's.
TrainingReport TrainSmall(int ranks, const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment = {},
                          const std::string& preload = "");
// Returns the arguments of that model.
std::vector<std::string> SmallModel();

}  // namespace dynamiccl::zero
