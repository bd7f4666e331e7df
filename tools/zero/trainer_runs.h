// SPDX-License-Identifier: Apache-2.0
// Runs dynamiccl-zero on this machine, one run after the other, and reads what each run reported.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// One evaluation on the held-out text.
struct HeldOutEvaluation {
  // Index of the step that preceded it, from 0.
  int64_t after_step = 0;
  double held_out_bits_per_byte = 0.0;
};

// The report of rank 0.
struct TrainerReport {
  std::vector<double> step_ms;
  // In the order of the steps.
  std::vector<HeldOutEvaluation> evaluations;
  // Bits per byte of the last evaluation; 0: not evaluated.
  double held_out_bits_per_byte = 0.0;
  // Peak bytes by category. "total" and "activations_kept" are among the categories.
  std::map<std::string, int64_t> peak_bytes;
  double sent_bytes_a_step = 0.0;
};

// Reads the lines that dynamiccl-zero writes with --json. kCorrupt when the trainer did not report to its
// end.
Result<TrainerReport> ReadTrainerReport(const std::string& path);

// Starts runs and owns the folder for their logs. One thread uses it; runs follow one another.
class TrainerRuns {
 public:
  // Creates the folder, which the destructor removes unless a run failed. `plan` has the number of ranks and
  // their environment; its command is the trainer's program.
  static Result<TrainerRuns> Open(LaunchPlan plan);
  TrainerRuns(TrainerRuns&& other) noexcept;
  TrainerRuns& operator=(TrainerRuns&&) = delete;
  ~TrainerRuns();

  int ranks() const { return plan_.n_ranks; }
  // A folder in which runs may leave files.
  std::string folder() const { return folder_; }
  // Trains with these options. kUnavailable when a rank ran out of memory; the error of any other failure
  // names the log.
  Result<TrainerReport> Train(const std::vector<std::string>& options);

 private:
  explicit TrainerRuns(LaunchPlan plan) : plan_(std::move(plan)) {}

  LaunchPlan plan_;
  std::string folder_;
  bool keep_ = false;
};

// The text to train on, for commands that do not require the user to name one. Returns the absolute path of
// `named`, a file or folder. Where `named` is empty, returns the Shakespeare text that
// tools/setup/fetch_shakespeare.sh puts into the user's cache.
Result<std::string> FindTrainingText(const std::string& named);

}  // namespace dynamiccl
