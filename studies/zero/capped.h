// SPDX-License-Identifier: Apache-2.0
// The largest model that each ZeRO stage can train when a rank's tensors may take only so much memory, found
// by training. It also shows how well each model learns in the same number of steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// Depth and heads of all models that a search tries. The models differ in width only. Each is a few per cent
// larger than the one before and needs more memory.
struct ModelLadder {
  int64_t layers = 4;
  int64_t heads = 4;
};

// A model size: the k-th model of a ladder has k columns for each head.
struct LadderRung {
  // Counts from 1; 0 stands for no model at all.
  int64_t number = 0;
  ModelLadder ladder;

  int64_t hidden() const { return ladder.heads * number; }
  // Parameters of a byte-level GPT with an untied head (docs/zero_trainer.md).
  int64_t parameters(int64_t sequence) const;
};

// Settings that all runs of the search share.
struct CappedSettings {
  // Memory of a rank, as --memory-cap takes it.
  std::string memory_cap;
  // Options of every run: data, batch, sequence, type, learning rate.
  std::vector<std::string> options;
  ModelLadder ladder;
  int64_t sequence = 128;
  // Number of steps of the training whose bits per byte are reported.
  int64_t steps = 200;
  // Number of steps between evaluations of that training. If it is 0, the only evaluation is after the last
  // step.
  int64_t eval_every = 0;
  // Number of trainings of each stage's largest model, with seeds 1, 2, ... The seed decides the first values
  // and the order of the data.
  int64_t seeds = 1;
};

// Result for one ZeRO stage.
struct CappedStage {
  int stage = 0;
  // The largest rung that fits. Number 0 means that not even the first rung fits.
  LadderRung rung;
  // One report for each seed.
  std::vector<TrainerReport> reports;

  // Bits per byte after the last step, by seed.
  std::vector<double> BitsPerByte() const;
};

// Finds and trains the largest model of every stage. A rung fits if a few training steps of its model fit.
// Any failure other than a lack of memory ends the search. `say` receives lines of progress.
Result<std::vector<CappedStage>> FindLargestModels(TrainerRuns& runs, const CappedSettings& settings,
                                                   const std::function<void(const std::string&)>& say);

// Returns the largest number from 1 on for which `fits` is true, or 0 if there is none. The search moves away
// from `guess`, which is at least 1, in steps that double, and then halves the gap. `fits` must be true up to
// some number and false from there on.
Result<int64_t> LargestThatFits(const std::function<Result<bool>(int64_t)>& fits, int64_t guess = 1);

// One row for each stage. With --eval-every, a second table has the mean over the seeds after each
// evaluation.
std::string CappedTable(const std::vector<CappedStage>& stages, const CappedSettings& settings);
Json CappedJson(const std::vector<CappedStage>& stages, const CappedSettings& settings);

}  // namespace dynamiccl
