// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run: where it goes on from, and what it saves when.
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

// A checkpoint that could not be written or read; ends the run with its error.
class CheckpointFailure : public std::runtime_error {
 public:
  explicit CheckpointFailure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

struct CheckpointedRun {
  ProcessGroup* group = nullptr;  // of all ranks of the run
  ZeroEngine* engine = nullptr;
  at::Device device = at::kCPU;  // whose tensors the group takes; offloaded states are elsewhere
  // Of the ranks that hold the same parameters whole (tensor parallelism), this one writes them.
  bool writes_whole_parameters = true;
  int64_t rows_per_step = 0;  // sequences
  StateValues values;         // "settings" and whatever else identifies the run
};

// All ranks make the same calls at the same steps. Failures throw CheckpointFailure, on all ranks where they
// are found while all wait for each other. Without a folder nothing happens.
class TrainingCheckpoints {
 public:
  // `tell` gets lines for people; only rank 0 calls it.
  TrainingCheckpoints(const CheckpointSettings& settings, const CheckpointedRun& run,
                      std::function<void(const std::string&)> tell);

  // Takes the folder, and where the run resumes, the engine's state; returns the steps that are done.
  int64_t Begin();
  // Saves where one is due. `last`: the run ends after this step.
  void AfterStep(int64_t steps_done, bool last);

 private:
  struct Loaded {
    StateValues values;
    std::vector<std::string> changed;  // settings, since the checkpoint
    size_t files = 0;
  };

  Status CheckEmpty() const;
  int64_t Resume();
  // After all ranks have loaded it.
  void Adopt(int64_t step, const Loaded& loaded);
  // The newest checkpoint of fewer steps than `below` as rank 0 sees it, or the one that was named; -1: none.
  int64_t Candidate(int64_t below) const;
  // Fills the engine's state tensors. An error of another kind than kCorrupt forbids older ones as well.
  Result<Loaded> Load(int64_t step);
  Status LoadState(const StateTensor& state, CheckpointReader* reader) const;
  Status LoadRange(const StateRange& range, const StateTensor& state, CheckpointReader* reader) const;
  void Save(int64_t steps_done);
  // Waits for the save under way, on all ranks.
  void FinishSave();
  PartContent Content(int64_t steps_done);
  StateValues ValuesAt(int64_t steps_done) const;

  int64_t Sum(int64_t number) const;
  // Throws on all ranks where one has failed.
  void Agree(const Status& own, const char* what) const;
  bool is_first() const { return run_.group->rank() == 0; }

  CheckpointSettings settings_;
  CheckpointedRun run_;
  std::function<void(const std::string&)> tell_;
  CheckpointFolder folder_;
  std::vector<at::Tensor> saved_;  // what the save under way reads
  std::unique_ptr<BackgroundSave> save_;
};

}  // namespace dynamiccl::zero
