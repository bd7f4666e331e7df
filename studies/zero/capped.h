// SPDX-License-Identifier: Apache-2.0
// The largest model that each ZeRO stage can train when a rank's tensors may take only so much memory, found
// by training, and how well each model learns in the same number of steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// A model size. Width and depth grow together: 32 columns and one block for each rung; a head has 32 columns.
struct LadderRung {
  // From 1 on.
  int64_t number = 0;

  int64_t hidden() const { return 32 * number; }
  int64_t layers() const { return number; }
  int64_t heads() const { return number; }
  // Parameters of a byte-level GPT with an untied head (docs/zero_trainer.md).
  int64_t parameters(int64_t sequence) const;
};

// Settings that all runs of the search share.
struct CappedSettings {
  // Memory of a rank, as --memory-cap takes it.
  std::string memory_cap;
  // Options of every run: data, batch, sequence, type, learning rate.
  std::vector<std::string> options;
  int64_t sequence = 128;
  // Steps of the training whose bits per byte are reported.
  int64_t steps = 200;
};

// Result for one ZeRO stage.
struct CappedStage {
  int stage = 0;
  // Number 0: not even the first rung fits.
  LadderRung rung;
  double bits_per_byte = 0.0;
  TrainerReport report;
};

// Finds and trains the largest model of every stage. A rung fits when a few steps of it do. Any failure other
// than a lack of memory ends the search. `say` receives lines of progress.
Result<std::vector<CappedStage>> FindLargestModels(TrainerRuns& runs, const CappedSettings& settings,
                                                   const std::function<void(const std::string&)>& say);

// The largest number from 1 on for which `fits` is true; 0 where there is none. Doubles first, then halves
// the gap. `fits` must be true up to some number and false from there on.
Result<int64_t> LargestThatFits(const std::function<Result<bool>(int64_t)>& fits);

std::string CappedTable(const std::vector<CappedStage>& stages, const CappedSettings& settings);
Json CappedJson(const std::vector<CappedStage>& stages, const CappedSettings& settings);

}  // namespace dynamiccl
