// SPDX-License-Identifier: Apache-2.0
// The largest model that each ZeRO stage trains when a rank's tensors may take so much memory and no more,
// found by training, and how well each learns in the same number of steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// A rung of the ladder: width and depth grow together, 32 columns and one block a rung; heads are of 32.
struct LadderRung {
  int64_t number = 0;  // from 1 on

  int64_t hidden() const { return 32 * number; }
  int64_t layers() const { return number; }
  int64_t heads() const { return number; }
  // As docs/zero_trainer.md counts a byte-level GPT with an untied head.
  int64_t parameters(int64_t sequence) const;
};

struct CappedSettings {
  std::string memory_cap;            // of a rank, as --memory-cap takes it
  std::vector<std::string> options;  // of every run: data, batch, sequence, type, learning rate
  int64_t sequence = 128;
  int64_t steps = 200;  // of the training whose bits per byte are told
};

struct CappedStage {
  int stage = 0;
  LadderRung rung;  // number 0: not even the first fits
  double bits_per_byte = 0.0;
  TrainerReport report;
};

// A rung fits when a few steps of it do; whatever else fails ends the search.
Result<std::vector<CappedStage>> FindLargestModels(TrainerRuns& runs, const CappedSettings& settings,
                                                   const std::function<void(const std::string&)>& say);

// The largest number from 1 on for which `fits` is true, 0 where there is none: doubles, then halves the
// gap. `fits` is true up to some number and false from there on.
Result<int64_t> LargestThatFits(const std::function<Result<bool>(int64_t)>& fits);

std::string CappedTable(const std::vector<CappedStage>& stages, const CappedSettings& settings);
Json CappedJson(const std::vector<CappedStage>& stages, const CappedSettings& settings);

}  // namespace dynamiccl
