// SPDX-License-Identifier: Apache-2.0
// The cost of a run's choices, compared with the best that a sweep of the same fabric measured, and the cost
// that the library's own choices would have had. All times come from the sweep: the best is picked on one
// half of the repeats and timed on the other (choice_comparison.h).
#pragma once

#include <string>
#include <vector>

#include "tools/report/choice_comparison.h"
#include "tools/report/run_account.h"

namespace dynamiccl {

// One key of the run, priced with the sweep's cell for it.
struct RegretRow {
  RunKey key;
  // Size of the cell, within half an octave of the key's.
  uint64_t measured_bytes = 0;
  // Counted calls: those at configs that the sweep measured.
  int64_t calls = 0;
  TimedConfig by_default;
  // The config that most calls got. Its time is the mean over all counted calls, whatever config they got.
  TimedConfig chosen;
  TimedConfig best;
};

// The regret of a run on one topology of a sweep. Seconds are sums over the counted calls of one rank.
struct Regret {
  std::string topology;
  std::vector<RegretRow> rows;
  // Calls of the run on communicators of this shape.
  int64_t calls = 0;
  // Number of calls in all rows.
  int64_t counted_calls = 0;
  // Time with the library's own choices.
  double default_s = 0;
  // Time with the choices of the run.
  double chosen_s = 0;
  // Time with the best of the sweep.
  double best_s = 0;

  // The run's regret: 0.1 means 10 % more time than the best. 0 when nothing was counted.
  double RegretShare() const { return best_s > 0 ? chosen_s / best_s - 1 : 0; }
  // The regret of the library's own choices.
  double DefaultRegretShare() const { return best_s > 0 ? default_s / best_s - 1 : 0; }
};

// One regret for each topology of `file` whose ranks and nodes match one of the keys. Only the ranks must
// match where the run had no tuner, because a trace learns the nodes from the tuner. Calls for which NCCL
// asked no tuner count as the default.
std::vector<Regret> RegretsOf(const std::vector<RunKeyAccount>& keys, const MeasurementFile& file);

}  // namespace dynamiccl
