// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/odd_fabric_promises.h"

#include <fmt/format.h>

#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

constexpr int kSteps = 400;
constexpr int kKeys = 4;
constexpr int kCallsOfKey = 6;
constexpr int64_t kComputedNs = 12'000'000;  // in a step
// Steps on a busy machine vary by about as much.
constexpr double kStepNoise = 0.05;

struct Gained {
  Spread share;      // of what there is to gain in the whole job
  Spread over_best;  // time of the transfers with the last choices over the best ones
};

void Gain(JobOptions job_options, Gained& result) {
  job_options.keys = kKeys;
  job_options.calls_per_step = kKeys * kCallsOfKey;
  job_options.step_ns = kComputedNs;
  job_options.step_noise = kStepNoise;
  job_options.nothing_to_win = true;
  job_options.one_channel_ratio = 0.5;
  job_options.timing_cost = 0;
  SimulatedJob job(job_options);
  job.RunSteps(kSteps);
  double nccl = 0, best = 0, chosen = 0;
  for (size_t key = 0; key < job.truth().size(); ++key) {
    const TrueKey& truth = job.truth()[key];
    nccl += truth.nccl_ns;
    best += truth.BestRatio() * truth.nccl_ns;
    chosen += job.RatioOf(key, job.ChoiceOf(key)) * truth.nccl_ns;
  }
  result.share.Add(-job.LossShare() / (1 - best / nccl));
  result.over_best.Add(chosen / best);
}

}  // namespace

std::vector<Promise> OddFabric(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("odd-fabric", timing, options, [&](Noise noise, Promise& promise) {
    Gained gained;
    for (int i = 0; i < options.seeds; ++i) Gain(JobOf(options, timing, noise, i), gained);
    promise.figures = fmt::format(
        "gained in {} steps: {:.0f} % of what there is (median), {:.0f} % at least; at the end {:.3f} of the "
        "best (median), {:.3f} at most",
        kSteps, 100 * gained.share.At(0.5), 100 * gained.share.At(0), gained.over_best.At(0.5),
        gained.over_best.most());
    promise.kept = gained.share.At(0.5) >= 0.5 && gained.over_best.At(0.5) <= 1.03;
  });
}

}  // namespace dynamiccl::testing
