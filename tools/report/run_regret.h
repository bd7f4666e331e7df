// SPDX-License-Identifier: Apache-2.0
// Computes what a run's choices cost, compared with the best configs that a sweep of the same fabric
// measured. Also what the library's own choices would have cost. All times come from the sweep: the best
// config is picked on one half of the repeats and timed on the other half (choice_comparison.h).
#pragma once

#include <string>
#include <vector>

#include "tools/report/choice_comparison.h"
#include "tools/report/run_account.h"

namespace dynamiccl {

// One key of the run, with the times that the sweep measured for its size or the nearest size.
struct RegretRow {
  RunKey key;
  // The size that the sweep measured, within half an octave of the key's size.
  uint64_t measured_bytes = 0;
  // Number of calls that count: those with a config that the sweep measured.
  int64_t calls = 0;
  TimedConfig by_default;
  // The config that most calls of the key got. The time with it is the mean over all counted calls, whatever
  // their config.
  TimedConfig chosen;
  TimedConfig best;
};

// Says how much longer a run's collectives took than with the best configs of a sweep, on one topology.
// Seconds are sums over the counted calls of one rank.
struct Regret {
  std::string topology;
  std::vector<RegretRow> rows;
  // Number of the run's calls on communicators with the topology's ranks and nodes.
  int64_t calls = 0;
  // Number of calls that count in the rows.
  int64_t counted_calls = 0;
  // Seconds that the counted calls take with the library's own choices.
  double default_s = 0;
  // Seconds that the counted calls take with the choices of the run.
  double chosen_s = 0;
  // Seconds that the counted calls take with the best configs of the sweep.
  double best_s = 0;

  // The run's regret: 0.1 means 10 % more time than the best. 0 when nothing was counted.
  double RegretShare() const { return best_s > 0 ? chosen_s / best_s - 1 : 0; }
  // The regret of the library's own choices.
  double DefaultRegretShare() const { return best_s > 0 ? default_s / best_s - 1 : 0; }
};

// Returns one regret for each topology of `file` that has the ranks and nodes of one of the keys. If the run
// had no tuner, only the ranks must match, because a trace learns the nodes from the tuner. A call about
// which NCCL asked no tuner counts as the default.
std::vector<Regret> RegretsOf(const std::vector<RunKeyAccount>& keys, const MeasurementFile& file);

}  // namespace dynamiccl
