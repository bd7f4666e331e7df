// SPDX-License-Identifier: Apache-2.0
// What a run tells while it runs: lines for people on standard output and JSON lines in a file, both from
// rank 0 alone.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

struct StepReport {
  int64_t step = 0;
  float loss = 0.0f;  // nats a byte, mean over the ranks and micro-steps
  float gradient_norm = 0.0f;
  double learning_rate = 0.0;
  int64_t nanoseconds = 0;
  int64_t wait_nanoseconds = 0;  // of rank 0's compute, for communication
};

struct RunReport {
  std::string parameters_sha256;
  double held_out_bits_per_byte = 0.0;  // only with evaluate_at_end
  int64_t nanoseconds = 0;
};

class Progress {
 public:
  // An unwritable JSON path is an error. Other ranks than 0 are silent and touch no file.
  static Result<Progress> Open(const TrainingSettings& settings, int rank, int world);

  void Begin(int64_t parameters, const TextDataset& text, const std::string& device);
  void Step(const StepReport& report);
  void Evaluated(int64_t step, double bits_per_byte);
  // Throws std::runtime_error where JSON lines could not be written.
  void End(const RunReport& report);

 private:
  Progress(const TrainingSettings& settings, int rank, int world)
      : settings_(settings), speaks_(rank == 0), world_(world) {}

  TrainingSettings settings_;
  bool speaks_;
  int world_;
  std::ofstream json_;
};

}  // namespace dynamiccl::zero
