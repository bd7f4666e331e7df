// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/small_gain_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

constexpr int kKeys = 4;
constexpr int kCallsOfKey = 6;
constexpr int64_t kComputedNs = 12'000'000;  // In ns per step.
constexpr double kStepNoise = 0.02;
constexpr int kSteps = 400;
constexpr int kManySteps = 4 * kSteps;
// A gain of this share must be found within kManySteps in two of three jobs of each kind of noise.
// docs/results/guard.md says how many smaller gains are found.
constexpr double kMostlyFound = 0.05;
// One in this many jobs may adopt a config although none is faster.
constexpr int kJobsOfAWrongAdoption = 1000;

JobOptions Of(JobOptions job_options, double one_channel_ratio) {
  job_options.keys = kKeys;
  job_options.calls_per_step = kKeys * kCallsOfKey;
  job_options.step_ns = kComputedNs;
  job_options.step_noise = kStepNoise;
  job_options.nothing_to_win = true;
  job_options.one_channel_ratio = one_channel_ratio;
  job_options.timing_cost = 0;
  return job_options;
}

// Returns the ratio of a call's times that makes this job's step shorter by `gain`.
double RatioOfGain(const JobOptions& job_options, double gain) {
  const SimulatedJob job(Of(job_options, 1));
  double transfers_ns = 0;
  for (const TrueKey& key : job.truth()) transfers_ns += kCallsOfKey * key.nccl_ns;
  return 1 - gain * (kComputedNs + transfers_ns) / transfers_ns;
}

bool Adopted(const SimulatedJob& job) {
  return std::any_of(job.switches().begin(), job.switches().end(),
                     [](const auto& each) { return each.reason == GuardReason::kAdopt; });
}

// True if most of the transfers' time is of keys whose choice is faster than NCCL's.
bool HasFound(const SimulatedJob& job) {
  double found = 0, all = 0;
  for (size_t key = 0; key < job.truth().size(); ++key) {
    const double nccl_ns = job.truth()[key].nccl_ns;
    all += nccl_ns;
    found += job.RatioOf(key, job.ChoiceOf(key)) < 1 ? nccl_ns : 0;
  }
  return 2 * found > all;
}

struct Found {
  int soon = 0;  // Jobs that use the config after kSteps.
  int late = 0;  // Jobs that use it after kManySteps.
};

void Run(const JobOptions& job_options, double gain, Found& found) {
  SimulatedJob job(Of(job_options, RatioOfGain(job_options, gain)));
  job.RunSteps(kSteps);
  found.soon += HasFound(job) ? 1 : 0;
  job.RunSteps(kManySteps - kSteps);
  found.late += HasFound(job) ? 1 : 0;
}

}  // namespace

std::vector<Promise> Alike(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("alike", timing, options, [&](Noise noise, Promise& promise) {
    int adopted = 0;
    for (int i = 0; i < options.seeds; ++i) {
      SimulatedJob job(Of(JobOf(options, timing, noise, i), 1));
      job.RunSteps(kManySteps);
      adopted += Adopted(job) ? 1 : 0;
    }
    promise.figures = fmt::format("no config is faster: adopted in {} jobs of {} steps", adopted, kManySteps);
    promise.kept = kJobsOfAWrongAdoption * adopted <= options.seeds;
  });
}

std::vector<Promise> SmallGain(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("small-gain", timing, options, [&](Noise noise, Promise& promise) {
    for (const double gain : {0.005, 0.01, 0.02, kMostlyFound}) {
      Found found;
      for (int i = 0; i < options.seeds; ++i) Run(JobOf(options, timing, noise, i), gain, found);
      promise.figures += (promise.figures.empty() ? "" : "; ") +
                         fmt::format("{:.1f} %: found in {} jobs after {} steps, in {} after {}", 100 * gain,
                                     found.soon, kSteps, found.late, kManySteps);
      if (gain == kMostlyFound) promise.kept = 3 * found.late >= 2 * options.seeds;
    }
  });
}

}  // namespace dynamiccl::testing
