// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run: decides from which one it resumes and when it saves.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "zero_workloads/checkpoint/background_save.h"
#include "zero_workloads/checkpoint/checkpoint_folder.h"
#include "zero_workloads/checkpoint/checkpoint_reader.h"
#include "zero_workloads/checkpoint/checkpoint_settings.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

// Thrown if a checkpoint could not be written or read. The exception ends the run with its error.
class CheckpointFailure : public std::runtime_error {
 public:
  explicit CheckpointFailure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// The parts of a run that checkpoints need; the pointers must outlive TrainingCheckpoints.
struct CheckpointedRun {
  // The group of all ranks of the run.
  ProcessGroup* group = nullptr;
  ZeroEngine* engine = nullptr;
  // Device of the tensors that are used with the group. Offloaded states may be on another device.
  at::Device device = at::kCPU;
  // With tensor parallelism, several ranks hold the same whole parameters. True on the one rank that writes
  // them.
  bool writes_whole_parameters = true;
  // Sequences that one optimizer step consumes, over all ranks and micro-steps.
  int64_t rows_per_step = 0;
  // "settings" and other values that identify the run.
  StateValues values;
};

// Saves and restores one rank's training. The training loop owns the object and calls it on the training
// thread. All ranks must make the same calls at the same steps, because they exchange their statuses. A
// failure throws CheckpointFailure. If the failure is found during an exchange, it is thrown on all ranks.
// Without a checkpoint folder nothing happens.
class TrainingCheckpoints {
 public:
  // `tell` receives lines for the user; it is called on rank 0 only.
  TrainingCheckpoints(const CheckpointSettings& settings, const CheckpointedRun& run,
                      std::function<void(const std::string&)> tell);

  // Claims the folder. If the run resumes, also loads the engine's state. Returns the number of steps that
  // are already done.
  int64_t Begin();
  // Saves if a save is due. If `last` is true, the run ends after this step, so the function waits for the
  // save.
  void AfterStep(int64_t steps_done, bool last);

 private:
  // The result of a successful Load, which Adopt uses.
  struct Loaded {
    StateValues values;
    // Settings of this run that differ from those stored in the checkpoint.
    std::vector<std::string> changed;
    size_t files = 0;
  };

  // Returns an error if a run that starts from the beginning finds checkpoints in its folder.
  Status CheckEmpty() const;
  // Tries candidates from the newest on until one loads on all ranks. Returns its step, or 0 if there is no
  // checkpoint.
  int64_t Resume();
  // Passes the loaded values to the engine, after all ranks have loaded the checkpoint.
  void Adopt(int64_t step, const Loaded& loaded);
  // The step of the newest checkpoint below step `below` as rank 0 sees it; -1 if there is none. A collective
  // call.
  int64_t Candidate(int64_t below) const;
  // Fills the engine's state tensors. Only an error of kind kCorrupt allows an older checkpoint to be tried.
  Result<Loaded> Load(int64_t step);
  // Returns an error if the checkpoint has a parameter that the model lacks. Such a checkpoint is of another
  // model, and the run would otherwise continue with only a part of it.
  Status CheckParameters(const CheckpointIndex& index) const;
  Status LoadState(const StateTensor& state, CheckpointReader* reader) const;
  Status LoadRange(const StateRange& range, const StateTensor& state, CheckpointReader* reader) const;
  void Save(int64_t steps_done);
  // Waits for the save under way, on all ranks.
  void FinishSave();
  // Collects what this rank writes. With async saving the numbers are copied first.
  PartContent Content(int64_t steps_done);
  StateValues ValuesAt(int64_t steps_done) const;

  // Calls `wait` again and again until it has returned true on every rank. `wait` gets the longest time to
  // wait. The ranks meet in a short collective between these calls, because hostccl would regard one long
  // wait in a collective as a hang.
  void AwaitAll(const std::function<bool(std::chrono::milliseconds)>& wait) const;
  // Returns the sum over all ranks. Collective call.
  int64_t Sum(int64_t number) const;
  // If a rank has failed, throws on all ranks. The failed rank throws its own error. The others throw an
  // error that says that other ranks could not do `what`.
  void Agree(const Status& own, const char* what) const;
  bool is_first() const { return run_.group->rank() == 0; }

  CheckpointSettings settings_;
  CheckpointedRun run_;
  std::function<void(const std::string&)> tell_;
  CheckpointFolder folder_;
  Retention retention_;
  // The numbers that the save under way reads.
  std::vector<at::Tensor> saved_;
  std::unique_ptr<BackgroundSave> save_;
};

}  // namespace dynamiccl::zero
