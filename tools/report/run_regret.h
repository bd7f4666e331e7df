// SPDX-License-Identifier: Apache-2.0
// What a run's choices cost more than the best that a sweep of the same fabric measured, and what the
// library's own would have cost. Times are the sweep's (choice_comparison.h): the best is picked on one half
// of the repeats and timed on the other.
#pragma once

#include <string>
#include <vector>

#include "tools/report/choice_comparison.h"
#include "tools/report/run_account.h"

namespace dynamiccl {

struct RegretRow {
  RunKey key;
  uint64_t measured_bytes = 0;  // the sweep's size that stands for the key's, within half an octave
  int64_t calls = 0;            // that are counted: at configs that the sweep measured
  TimedConfig by_default;
  TimedConfig chosen;  // the answer that most of the calls had; microseconds: mean over all counted calls
  TimedConfig best;
};

struct Regret {
  std::string topology;
  std::vector<RegretRow> rows;
  int64_t calls = 0;          // of the run on communicators of this shape
  int64_t counted_calls = 0;  // of rows
  // Of the counted calls, seconds in all.
  double default_s = 0;
  double chosen_s = 0;
  double best_s = 0;

  double RegretShare() const {
    return best_s > 0 ? chosen_s / best_s - 1 : 0;
  }  // 0.1: 10 % more than the best
  double DefaultRegretShare() const { return best_s > 0 ? default_s / best_s - 1 : 0; }
};

// One for each topology of the file that has the ranks and nodes of one of the keys; the ranks alone where
// the run had no tuner, which is who learns of the nodes. Calls about which nobody was asked count as the
// default.
std::vector<Regret> RegretsOf(const std::vector<RunKeyAccount>& keys, const MeasurementFile& file);

}  // namespace dynamiccl
