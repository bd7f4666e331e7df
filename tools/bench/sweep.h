// SPDX-License-Identifier: Apache-2.0
// Times every config that the library offers, and its own choice, on one topology. Every rank runs it. The
// library's own cost table says what is offered, so new algorithms and protocols are swept as they appear
// there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/bench_session.h"
#include "tools/bench/chosen_sweep.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// The progress of a sweep that goes in rounds.
struct SweepPosition {
  // Number of the round, from 1 on; 0 while one untimed sample of every config is taken.
  int round = 0;
  // Rounds that the budget allows at the pace measured so far; 0 while that is not known.
  int rounds = 0;
  // Number of finished cells of this round, and number of all its cells.
  size_t done = 0;
  size_t cells = 0;
  // Seconds since the sweep began, and seconds until its end at the pace measured so far.
  double spent_s = 0;
  double left_s = 0;
};

// The keys to measure, the limits, and the buffers. All ranks must have equal options.
struct SweepOptions {
  // Name under which the rows are stored.
  std::string topology;
  std::vector<Collective> collectives;
  std::vector<uint64_t> sizes;
  int repeats = 12;
  // Seconds; decides how many repeats fit. The untimed samples and two rounds are taken whatever they cost.
  double budget_s = 60;
  // Buffers of the largest size. Both null: the sweep allocates its own.
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
  // Path of the sweep's tuner plugin (sweep_tuner.cc), which NCCL_TUNER_PLUGIN must name too.
  std::string tuner_path;
  // Called between the cells of a sweep in rounds. Ranks may have different observers; empty: none.
  std::function<void(const SweepPosition&)> observer = {};
};

// Times of all cells, equal on all ranks.
struct SweepResult {
  MeasurementContext context;
  // Rows of the measurement file, equal on all ranks.
  std::vector<Measurement> rows;
  // Repeats of each cell. There are fewer than the options asked for if the budget did not allow them.
  int repeats = 0;
  // Attempts at groups of cells in which the machine's copy rate changed.
  int disturbed = 0;
  double seconds = 0;
};

// Measures all cells in rounds. It is an error (kUnavailable) when the library did not load the plugin or
// does not ask it; NCCL_ALGO and NCCL_PROTO must not be set.
Result<SweepResult> RunSweep(BenchSession& session, const SweepOptions& options);

// Receives the progress of a chosen sweep, on every rank alike. An error ends the sweep.
struct SweepObserver {
  std::function<Status(const MeasurementContext&)> begun;
  // Some repeats of one cell, and how long the visit took.
  std::function<Status(const Measurement&, double seconds)> visited;
};

// Measures one cell (a config for one collective and size) at a time, a few repeats in each visit, until the
// budget is spent or all cells are done. `known` holds what earlier runs measured; all ranks use rank 0's.
// Errors are those of RunSweep.
Result<ChosenSweepResult> RunChosenSweep(BenchSession& session, const SweepOptions& options,
                                         const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                         const SweepObserver& observer);

}  // namespace dynamiccl
