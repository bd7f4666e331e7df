// SPDX-License-Identifier: Apache-2.0
// What a run tells while it runs: lines for people on standard output and JSON lines in a file, both from
// rank 0 alone.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/memory/step_batch.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/tensorboard_events.h"
#include "zero_workloads/training_settings.h"

namespace dynamiccl::zero {

struct StepReport {
  int64_t step = 0;
  StepSamples samples;
  float loss = 0.0f;  // nats a byte, mean over the ranks and micro-steps
  float gradient_norm = 0.0f;
  double loss_scale = 1.0;
  bool skipped = false;  // gradients overflowed, nothing was changed
  double learning_rate = 0.0;
  int64_t nanoseconds = 0;
  int64_t wait_nanoseconds = 0;  // of rank 0's compute, for communication
};

struct RunReport {
  std::string parameters_sha256;
  double held_out_bits_per_byte = 0.0;  // only with evaluate_at_end
  int64_t nanoseconds = 0;
  MemoryCounters memory;   // of rank 0, after the last step
  OffloadTraffic offload;  // of rank 0; file_bytes is 0 where there are no files
  int64_t sent_bytes = 0;  // by rank 0 for all steps, as ProcessGroup counts them
};

class Progress {
 public:
  // An unwritable JSON path or TensorBoard folder is an error. Other ranks than 0 are silent and touch no
  // file.
  static Result<Progress> Open(const TrainingSettings& settings, int rank, int world);

  void Begin(int64_t parameters, const TextDataset& text, const std::string& device);
  // A line for people.
  void Tell(const std::string& line);
  void Step(const StepReport& report);
  void Evaluated(int64_t step, double bits_per_byte);
  // Throws std::runtime_error where JSON lines or events could not be written.
  void End(const RunReport& report);

 private:
  Progress(const TrainingSettings& settings, int rank, int world)
      : settings_(settings), speaks_(rank == 0), world_(world) {}

  void WriteEvents(const StepReport& report);

  TrainingSettings settings_;
  bool speaks_;
  int world_;
  std::ofstream json_;
  std::optional<TensorboardEvents> events_;
};

}  // namespace dynamiccl::zero
