// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/short_job_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

constexpr std::array kShortSteps{150, 600, 2000};
constexpr int kWindowSteps = 20;
constexpr double kMaxOfWindow = 10;
constexpr double kMaxOfWindowAfterChange = 20;

// The loss of a job in which NCCL's choice is the best, in per cent of its time with that choice.
struct ShortLoss {
  std::array<Spread, kShortSteps.size()> after;
  Spread window;               // The worst window of each job, before the guard saw a change of the fabric.
  Spread window_after_change;  // A burst may last longer than the verification of a change.
};

bool SawChange(const SimulatedJob& job) {
  return std::any_of(job.switches().begin(), job.switches().end(), [](const auto& each) {
    return each.reason == GuardReason::kRegimeChanged || each.reason == GuardReason::kPaceChanged;
  });
}

void Lose(const JobOptions& job_options, ShortLoss& result) {
  SimulatedJob job(job_options);
  std::vector<double> loss{0}, without{0};
  double worst[2] = {};  // Before a change, and after it.
  for (int step = 1; step <= kShortSteps.back(); ++step) {
    job.RunSteps(1);
    loss.push_back(job.LossNs());
    without.push_back(static_cast<double>(job.now_ns()) - job.LossNs());
    const auto from = static_cast<size_t>(std::max(0, step - kWindowSteps));
    double& so_far = worst[SawChange(job) ? 1 : 0];
    if (step >= kWindowSteps)
      so_far = std::max(so_far, (loss.back() - loss[from]) / (without.back() - without[from]));
    for (size_t i = 0; i < kShortSteps.size(); ++i) {
      if (step == kShortSteps[i]) result.after[i].Add(100 * loss.back() / without.back());
    }
  }
  result.window.Add(100 * worst[0]);
  if (SawChange(job)) result.window_after_change.Add(100 * worst[1]);
}

struct JobsToLoseIn {
  const char* name;
  double policy_ratio;  // See JobOptions.
  std::array<double, kShortSteps.size()> most;
};

// Runs jobs with steps of 100 ms and of 10 ms, because limits in seconds then come after different numbers of
// calls.
std::vector<Promise> Losing(const JobsToLoseIn& jobs, const PromiseOptions& options, Timing timing) {
  return ForEachNoise(jobs.name, timing, options, [&](Noise noise, Promise& promise) {
    ShortLoss loss;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      job_options.nothing_to_win = true;
      job_options.policy_ratio = jobs.policy_ratio;
      Lose(job_options, loss);
      job_options.step_ns /= 10;
      Lose(job_options, loss);
    }
    for (size_t i = 0; i < kShortSteps.size(); ++i) {
      promise.figures += fmt::format("loss after {} steps: {:.2f} % (median), {:.2f} % at most; ",
                                     kShortSteps[i], loss.after[i].At(0.5), loss.after[i].most());
      promise.kept &= loss.after[i].most() <= jobs.most[i];
    }
    promise.figures += fmt::format(
        "worst {} steps: {:.2f} % (median), {:.2f} % at most, after a change that {} jobs saw {:.2f} %",
        kWindowSteps, loss.window.At(0.5), loss.window.most(), loss.window_after_change.count(),
        loss.window_after_change.most());
    promise.kept &=
        loss.window.most() <= kMaxOfWindow && loss.window_after_change.most() <= kMaxOfWindowAfterChange;
  });
}

}  // namespace

std::vector<Promise> ShortJobs(const PromiseOptions& options, Timing timing) {
  return Losing({"short", 0, {3, 1.5, 1}}, options, timing);
}

std::vector<Promise> ShortJobsOfSlowerPolicy(const PromiseOptions& options, Timing timing) {
  return Losing({"short-slower", 1.2, {3, 1.6, 1}}, options, timing);
}

}  // namespace dynamiccl::testing
