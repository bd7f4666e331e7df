// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/crowded_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

// The sizes of the measured job: six buckets of four size classes and 16.5 ms per step. NCCL's own choice
// costs 4.7 % of a step.
constexpr int kKeys = 4;
constexpr int kCallsPerStep = 6;
constexpr int64_t kStepNs = 15'750'000;
constexpr double kCrowding = 0.047;

// The two machines on which the job was measured.
struct Machine {
  double step_noise;  // Of a step, as a deviation of logs.
  double pace_memory;
  double wave_noise;
  double call_waves;
  double issued_within;
  int steps;
  double runs_ahead = 0;
  int waits_every = 0;
  bool device_times = false;
};
constexpr Machine kQuiet{0.03, 0, 0, 0, 1, 400};
constexpr Machine kNoisy{0.1, 0.65, 0, 0, 1, 4000};
constexpr Machine kShared{0.05, 0, 0.075, 0, 1, 4000};
constexpr Machine kAhead{0.04, 0, 0.02, 0, 0.3, 2000};
constexpr Machine kAheadWaves{0.04, 0, 0.02, 0.2, 0.3, 2000};
// A host that runs more than a step ahead. It waits for the device every tenth step, or never.
constexpr Machine kStepsAhead{0.04, 0, 0.02, 0, 1, 2000, 2.5, 10, true};
constexpr Machine kNeverWaits{0.04, 0, 0.02, 0, 1, 2000, 1.6, 0, true};

struct Gained {
  Spread share;     // Share of the possible gain in the whole job.
  Spread at_end;    // Share of the keys whose choice no longer crowds the computation.
  int adopted = 0;  // Jobs without a difference in which a config was adopted.
};

JobOptions MeasuredJob(JobOptions job_options, const Machine& machine, double crowding) {
  job_options.keys = kKeys;
  job_options.hidden_keys = kKeys;
  job_options.calls_per_step = kCallsPerStep;
  job_options.step_ns = kStepNs;
  job_options.step_noise = machine.step_noise;
  job_options.pace_memory = machine.pace_memory;
  job_options.wave_noise = machine.wave_noise;
  job_options.call_waves = machine.call_waves;
  job_options.issued_within = machine.issued_within;
  job_options.runs_ahead = machine.runs_ahead;
  job_options.waits_every = machine.waits_every;
  job_options.device_times = machine.device_times;
  job_options.nothing_to_win = true;
  job_options.crowding = crowding;
  job_options.timing_cost = 0;
  return job_options;
}

double GainedShare(const SimulatedJob& job) {
  double calls = 0, freed = 0;
  for (const KeyHistory& key : job.history()) {
    calls += static_cast<double>(key.calls);
    freed += static_cast<double>(key.non_default);
  }
  return freed / calls;
}

void Gain(const JobOptions& job_options, const Machine& machine, Gained& result) {
  SimulatedJob job(MeasuredJob(job_options, machine, kCrowding));
  job.RunSteps(machine.steps);
  result.share.Add(GainedShare(job));
  double freed = 0;
  for (size_t key = 0; key < job.truth().size(); ++key)
    freed += job.ChoiceOf(key).leaves_nccl_alone() ? 0 : 1;
  result.at_end.Add(freed / kKeys);

  SimulatedJob alike(MeasuredJob(job_options, machine, 0));
  alike.RunSteps(machine.steps);
  result.adopted += std::any_of(alike.switches().begin(), alike.switches().end(),
                                [](const auto& each) { return each.reason == GuardReason::kAdopt; });
}

std::string Describe(const Machine& machine, Gained& gained) {
  return fmt::format(
      "steps vary by {:.0f} %: gained in {} steps {:.0f} % of what there is (median), {:.0f} % at least, at "
      "the "
      "end {:.0f} % of the keys (median); adopted without a difference in {} jobs",
      100 * std::hypot(machine.step_noise, machine.wave_noise), machine.steps, 100 * gained.share.At(0.5),
      100 * gained.share.At(0), 100 * gained.at_end.At(0.5), gained.adopted);
}

}  // namespace

std::vector<Promise> Crowded(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("crowded", timing, options, [&](Noise noise, Promise& promise) {
    for (const Machine& machine : {kQuiet, kNoisy, kShared, kAhead, kAheadWaves, kStepsAhead, kNeverWaits}) {
      Gained gained;
      for (int i = 0; i < options.seeds; ++i) Gain(JobOf(options, timing, noise, i), machine, gained);
      promise.figures += (promise.figures.empty() ? "" : "; ") + Describe(machine, gained);
      promise.kept &= gained.share.At(0.5) >= 0.5 && gained.at_end.At(0.5) >= 0.5 &&
                      1000 * gained.adopted <= options.seeds;
    }
  });
}

}  // namespace dynamiccl::testing
