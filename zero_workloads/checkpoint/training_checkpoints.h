// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run: from which it resumes, and when it saves what.
#pragma once

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

// A checkpoint that could not be written or read. It ends the run with its error.
class CheckpointFailure : public std::runtime_error {
 public:
  explicit CheckpointFailure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// The parts of a run that checkpoints need; the pointers outlive TrainingCheckpoints.
struct CheckpointedRun {
  // All ranks of the run.
  ProcessGroup* group = nullptr;
  ZeroEngine* engine = nullptr;
  // Where the group's tensors lie; offloaded states lie elsewhere.
  at::Device device = at::kCPU;
  // Tensor parallelism: of the ranks that hold the same whole parameters, this one writes them.
  bool writes_whole_parameters = true;
  // Sequences that one optimizer step consumes, over all ranks and micro-steps.
  int64_t rows_per_step = 0;
  // "settings" and other values that identify the run.
  StateValues values;
};

// The training loop of each rank owns one and calls it on the training thread; all ranks make the same calls
// at the same steps, since they exchange their statuses. Failures throw CheckpointFailure, on all ranks if
// they are found while all wait for each other. Without a folder nothing happens.
class TrainingCheckpoints {
 public:
  // `tell` receives lines for people; only rank 0 calls it.
  TrainingCheckpoints(const CheckpointSettings& settings, const CheckpointedRun& run,
                      std::function<void(const std::string&)> tell);

  // Claims the folder and, if the run resumes, loads the engine's state. Returns the steps that are done.
  int64_t Begin();
  // Saves if a save is due. `last`: the run ends after this step, so the save is awaited.
  void AfterStep(int64_t steps_done, bool last);

 private:
  // A successful Load leaves this for Adopt.
  struct Loaded {
    StateValues values;
    // Settings that differ from the checkpoint's.
    std::vector<std::string> changed;
    size_t files = 0;
  };

  // An error if a run that starts anew finds checkpoints in its folder.
  Status CheckEmpty() const;
  // Tries candidates from the newest on until one loads on all ranks. Returns its step, or 0 if there is
  // none.
  int64_t Resume();
  // Hands the loaded values to the engine, once all ranks have loaded the checkpoint.
  void Adopt(int64_t step, const Loaded& loaded);
  // The newest checkpoint below step `below` as rank 0 sees it; -1: none. A collective call.
  int64_t Candidate(int64_t below) const;
  // Fills the engine's state tensors. Only an error of kind kCorrupt allows an older checkpoint to be tried.
  Result<Loaded> Load(int64_t step);
  Status LoadState(const StateTensor& state, CheckpointReader* reader) const;
  Status LoadRange(const StateRange& range, const StateTensor& state, CheckpointReader* reader) const;
  void Save(int64_t steps_done);
  // Waits for the save under way, on all ranks.
  void FinishSave();
  // Collects what this rank writes. With async saving the numbers are copied first.
  PartContent Content(int64_t steps_done);
  StateValues ValuesAt(int64_t steps_done) const;

  // The sum over all ranks: a collective call.
  int64_t Sum(int64_t number) const;
  // Throws on all ranks if one has failed: its own error on that rank, elsewhere that other ranks could not
  // do `what`.
  void Agree(const Status& own, const char* what) const;
  bool is_first() const { return run_.group->rank() == 0; }

  CheckpointSettings settings_;
  CheckpointedRun run_;
  std::function<void(const std::string&)> tell_;
  CheckpointFolder folder_;
  // The numbers that the save under way reads.
  std::vector<at::Tensor> saved_;
  std::unique_ptr<BackgroundSave> save_;
};

}  // namespace dynamiccl::zero
