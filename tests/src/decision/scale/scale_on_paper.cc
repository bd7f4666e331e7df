// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/scale/scale_on_paper.h"

#include <algorithm>

#include "src/base/statistics.h"
#include "src/decision/decision_digest.h"
#include "src/decision/guard/timed_calls.h"

namespace dynamiccl::testing {
namespace {

constexpr int kWindow = 20;  // In steps.
// TableGuard assumes the same value.
constexpr double kTimingCost = 0.04;
// These are the values of plugin/runtime/switch_thread.cc and plugin/times/times_report.h.
constexpr double kTimesTogether = 4, kSendTimesSeconds = 0.02;

// The course of one job, one entry for each window of steps.
struct Course {
  std::vector<double> window_ns;
  double total_ns = 0;
};

JobOptions OptionsOf(const ScaledStep& step, const ScaleOptions& options, uint64_t seed,
                     uint64_t switch_calls) {
  JobOptions job;
  job.seed = seed;
  job.timing = Timing::kPlanned;
  job.timing_cost = kTimingCost;
  job.step_noise = options.step_noise;
  job.given = step.keys;
  for (TrueKey& key : job.given)
    std::erase_if(key.configs, [&](const TrueKey::Config& config) {
      return options.most_predicted > 0 && config.predicted > options.most_predicted;
    });
  job.places = step.places;
  job.step_ns = static_cast<int64_t>(step.compute_ns);
  job.switch_calls = static_cast<int>(switch_calls);
  return job;
}

Course Run(SimulatedJob& job, const ScaledStep& after, int steps) {
  Course course;
  double until_ns = 0;
  for (int step = 0; step < steps; step += kWindow) {
    if (step == steps / 2) job.ChangeKeys(after.keys);
    job.RunSteps(kWindow);
    const double now_ns = static_cast<double>(job.now_ns()) + job.timing_ns();
    course.window_ns.push_back(now_ns - until_ns);
    until_ns = now_ns;
  }
  course.total_ns = until_ns;
  return course;
}

// Returns the nanoseconds of a step without noise, computed from the configs' effects on steps.
double StepNs(const ScaledStep& step, const SimulatedJob* job) {
  double ns = step.compute_ns;
  for (const size_t key : step.places) {
    const TrueKey& truth = step.keys[key];
    const auto chosen = std::ranges::find_if(truth.configs, [&](const TrueKey::Config& config) {
      return job != nullptr && config.config == job->ChoiceOf(key);
    });
    const bool nccls = chosen == truth.configs.end();
    ns += truth.nccl_ns * (nccls ? truth.exposed : chosen->ratio * chosen->exposed);
  }
  return ns;
}

void Compare(const Course& guarded, const Course& nccl, ScaleResult& result) {
  double guarded_ns = 0, nccl_ns = 0, lost_most = -1, worst = -1;
  for (size_t i = 0; i < nccl.window_ns.size(); ++i) {
    guarded_ns += guarded.window_ns[i];
    nccl_ns += nccl.window_ns[i];
    lost_most = std::max(lost_most, guarded_ns / nccl_ns - 1);
    worst = std::max(worst, guarded.window_ns[i] / nccl.window_ns[i] - 1);
  }
  result.gained.push_back(1 - guarded_ns / nccl_ns);
  result.lost_most.push_back(lost_most);
  result.worst_20.push_back(worst);
}

double SwitchMessages(size_t versions, const ScaleResult& result) {
  if (versions == 0) return 0;
  return static_cast<double>(result.first_switch.total() + (versions - 1) * result.later_switch.total());
}

double MessageRate(const SimulatedJob& job, const ScaleResult& result, int ranks) {
  const double seconds = static_cast<double>(job.now_ns()) / 1e9;
  return SwitchMessages(job.switches().size(), result) / seconds +
         DigestRate(ranks, static_cast<double>(job.calls()) / seconds) +
         TimesRate(ranks, static_cast<double>(job.timed_calls()) / seconds);
}

}  // namespace

const std::vector<ScaleEvent>& ScaleEvents() {
  const NetworkLoad half{.share = 0.5}, node{.node = 0, .share = 0.75};
  static const std::vector<ScaleEvent> kEvents{{"healthy", {}, {}},
                                               {"loaded", {half}, {half}},
                                               {"slow node", {node}, {node}},
                                               {"load comes", {}, {half}},
                                               {"node slows", {}, {node}}};
  return kEvents;
}

double ScaleResult::to_win() const {
  return 1 - (before.best_ns + after.best_ns) / (before.nccl_ns + after.nccl_ns);
}
double ScaleResult::regret() const {
  return (1 - Median(gained)) / (1 - to_win()) - 1;
}

double DigestRate(int ranks, double calls_per_second) {
  return ranks * std::min(1.0, calls_per_second / static_cast<double>(kCheckpointCalls));
}

double TimesRate(int ranks, double timed_per_second) {
  return ReportersOf(ranks) *
         std::min(timed_per_second, timed_per_second / kTimesTogether + 1 / kSendTimesSeconds);
}

ScaleResult RunSteps(const ScaledStep& before, const ScaledStep& after, int ranks,
                     const ScaleOptions& options) {
  ScaleResult result{.before = before, .after = after};
  const double call_ns = before.nccl_ns / static_cast<double>(before.places.size());
  const SwitchNetwork network{.call_ns = static_cast<int64_t>(call_ns)};
  result.first_switch = CostOfSwitch(ranks, network, true);
  result.later_switch = CostOfSwitch(ranks, network, false);
  for (int seed = 1; seed <= options.seeds; ++seed) {
    const auto job_options =
        OptionsOf(before, options, static_cast<uint64_t>(seed), result.later_switch.calls);
    auto alone_options = job_options;
    alone_options.trials = false;
    alone_options.timing_cost = 0;
    SimulatedJob job(job_options), alone(alone_options);
    Compare(Run(job, after, options.steps), Run(alone, after, options.steps), result);
    result.at_end.push_back(StepNs(after, &job) / after.best_ns - 1);
    result.versions.push_back(static_cast<double>(job.switches().size()));
    result.message_rate.push_back(MessageRate(job, result, ranks));
  }
  return result;
}

Result<ScaleResult> RunAtScale(const ScaledCase& scaled, const ScaleEvent& event,
                               const ScaleOptions& options) {
  ScaledCase each = scaled;
  each.loads = event.before;
  DYNAMICCL_TRY(const ScaledStep before, StepAtScale(each));
  each.loads = event.after;
  DYNAMICCL_TRY(const ScaledStep after, StepAtScale(each));
  return RunSteps(before, after, scaled.ranks, options);
}

}  // namespace dynamiccl::testing
