// SPDX-License-Identifier: Apache-2.0
// Times every config that the library offers, and the library's own choice, on one topology. Every rank runs
// the sweep. The library's cost table says which configs are offered, so the sweep also times new algorithms
// and protocols as soon as a library has them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/bench_session.h"
#include "tools/bench/chosen_sweep.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Says how far a sweep in rounds is. Each round times every cell (a config for one collective and size) once.
struct SweepPosition {
  // Number of the round, from 1 on; 0 while one untimed sample of every config is taken.
  int round = 0;
  // Number of rounds that the budget allows at the pace so far; 0 while the pace is not known.
  int rounds = 0;
  // Number of cells of this round that are finished, and number of all cells.
  size_t done = 0;
  size_t cells = 0;
  // Seconds since the sweep began, and seconds until its end at the pace so far.
  double spent_s = 0;
  double left_s = 0;
};

// Holds what a sweep measures, its limits, and its buffers. All ranks must have equal options.
struct SweepOptions {
  // Name of the topology in the rows of the measurement file.
  std::string topology;
  std::vector<Collective> collectives;
  std::vector<uint64_t> sizes;
  int repeats = 12;
  // Budget in seconds. It decides how many rounds a sweep makes. The untimed samples and two rounds are made
  // even if they take longer.
  double budget_s = 60;
  // Buffers for the largest size. If both are null, the sweep allocates its own.
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
  // Path of the sweep's tuner plugin (sweep_tuner.cc), which NCCL_TUNER_PLUGIN must name too.
  std::string tuner_path;
  // Called between the cells of a sweep in rounds. Ranks may have different observers; empty: none.
  std::function<void(const SweepPosition&)> observer = {};
};

// The times that a sweep measured, equal on all ranks.
struct SweepResult {
  MeasurementContext context;
  // Rows of the measurement file, equal on all ranks.
  std::vector<Measurement> rows;
  // Number of timed samples of each cell. It is lower than the options ask for if the budget did not allow
  // more.
  int repeats = 0;
  // Number of times that a group of cells was measured while the machine's copy rate changed.
  int disturbed = 0;
  double seconds = 0;
};

// Measures all cells in rounds. It is an error (kUnavailable) when the library did not load the sweep's tuner
// plugin or does not ask it. NCCL_ALGO and NCCL_PROTO must not be set.
Result<SweepResult> RunSweep(BenchSession& session, const SweepOptions& options);

// Receives the progress of a sweep that measures one cell at a time. All ranks get the same calls. An error
// ends the sweep.
struct SweepObserver {
  std::function<Status(const MeasurementContext&)> begun;
  // Called after each visit to a cell, with the times that the visit measured and the seconds that it took.
  std::function<Status(const Measurement&, double seconds)> visited;
};

// Measures one cell (a config for one collective and size) at a time, with a few samples each, until the
// budget is spent or all cells are done. `known` holds what earlier runs measured; all ranks use the one of
// rank 0. Returns the same errors as RunSweep.
Result<ChosenSweepResult> RunChosenSweep(BenchSession& session, const SweepOptions& options,
                                         const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                         const SweepObserver& observer);

}  // namespace dynamiccl
