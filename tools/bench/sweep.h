// SPDX-License-Identifier: Apache-2.0
// Times every config that the library offers, and its own choice, on one topology. Runs on every rank. What
// is offered is read from the library's own cost table: new algorithms and protocols are swept as they appear
// there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/bench_session.h"
#include "tools/bench/chosen_sweep.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

struct SweepOptions {
  std::string topology;  // name under which the rows are stored
  std::vector<Collective> collectives;
  std::vector<uint64_t> sizes;
  int repeats = 12;
  double budget_s = 60;
  // Buffers of the largest size; both null: the sweep allocates its own.
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::string tuner_path;  // of sweep_tuner.cc's object, the one that NCCL_TUNER_PLUGIN names
};

struct SweepResult {
  MeasurementContext context;
  std::vector<Measurement> rows;  // equal on all ranks
  int repeats = 0;                // less than asked where the budget did not allow them
  int disturbed = 0;  // groups of cells measured again since the machine's copy rate changed meanwhile
  double seconds = 0;
};

// Fails when the library did not load the plugin or does not ask it (NCCL_ALGO and NCCL_PROTO must not be
// set).
Result<SweepResult> RunSweep(BenchSession& session, const SweepOptions& options);

// Told on every rank alike.
struct SweepObserver {
  std::function<Status(const MeasurementContext&)> begun;
  std::function<Status(const Measurement&, double seconds)> visited;  // some repeats of a cell
};

// Visits cells one by one within the budget instead of all in rounds. `known`: what rank 0 knows of earlier
// visits. Fails as RunSweep.
Result<ChosenSweepResult> RunChosenSweep(BenchSession& session, const SweepOptions& options,
                                         const ChoiceOptions& choice, const std::vector<Measurement>& known,
                                         const SweepObserver& observer);

}  // namespace dynamiccl
