// SPDX-License-Identifier: Apache-2.0
// The reports of a run: lines for the user on standard output, JSON lines in a file, and events for
// TensorBoard. Only rank 0 reports.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "zero_workloads/device/host_memory.h"
#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/step_batch.h"
#include "zero_workloads/tensorboard_events.h"
#include "zero_workloads/training_settings.h"
#include "zero_workloads/zero/live_settings.h"

namespace dynamiccl::zero {

// One optimizer step as rank 0 saw it.
struct StepReport {
  int64_t step = 0;
  StepSamples samples;
  // Mean over the ranks and micro-steps, in nats per byte.
  float loss = 0.0f;
  float gradient_norm = 0.0f;
  double loss_scale = 1.0;
  // True if gradients overflowed, so that the step changed nothing.
  bool skipped = false;
  double learning_rate = 0.0;
  int64_t nanoseconds = 0;
  // Time for which rank 0's compute waited for communication.
  int64_t wait_nanoseconds = 0;
  // The settings that the step used. They change between steps only with --live.
  LiveSettings live;
};

// The results of the whole run, after its last step.
struct RunReport {
  // Number of steps of this run. Steps before a resume, which an earlier run did, are not included.
  int64_t steps = 0;
  std::string parameters_sha256;
  // Bits per byte on the held-out text. Set only if the setting evaluate_at_end is true.
  double held_out_bits_per_byte = 0.0;
  int64_t nanoseconds = 0;
  // Memory of rank 0 after the last step.
  MemoryCounters memory;
  HostMemoryCounters host_memory;
  // Traffic between rank 0's optimizer and its files. file_bytes is 0 if the optimizer uses no files.
  OffloadTraffic offload;
  // Bytes that rank 0 sent in all steps, as ProcessGroup counts them.
  int64_t sent_bytes = 0;
};

// Writes the reports of one run. Train() owns the object and uses it on the training thread. On ranks other
// than 0 every method does nothing.
class Progress {
 public:
  // Opens the files on rank 0. A JSON path or TensorBoard folder that cannot be written is an error. The
  // first report replaces the lines of an earlier run in the JSON file; a run that resumes adds to them.
  static Result<Progress> Open(const TrainingSettings& settings, int rank, int world);

  // Prints the run's shape and the text's entropy, as a reference for the first losses.
  void Begin(int64_t parameters, const TextDataset& text, const std::string& device);
  // Prints a line for the user.
  void Tell(const std::string& line);
  // Reports a step. A line for the user is printed only every `log_every` steps.
  void Step(const StepReport& report);
  // Reports an evaluation on the held-out text after `step`.
  void Evaluated(int64_t step, double bits_per_byte);
  // Prints the summary. Throws std::runtime_error if JSON lines or events could not be written.
  void End(const RunReport& report);

 private:
  Progress(const TrainingSettings& settings, int rank, int world)
      : settings_(settings), speaks_(rank == 0), world_(world) {}

  void WriteEvents(const StepReport& report);
  // Writes a line of JSON, if there is a file for it.
  void WriteJson(const nlohmann::json& line);
  // Bytes of text that a step trained on, over all ranks.
  double TokensOf(const StepReport& report) const;

  TrainingSettings settings_;
  bool speaks_;
  int world_;
  std::ofstream json_;
  // True until the first line of a run that does not resume.
  bool replaces_json_ = false;
  std::optional<TensorboardEvents> events_;
};

}  // namespace dynamiccl::zero
