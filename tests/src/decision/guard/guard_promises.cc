// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/guard_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/decision/guard/learnt_at_site.h"
#include "src/decision/site_store/site_store_file.h"
#include "tests/src/decision/guard/crowded_promises.h"
#include "tests/src/decision/guard/odd_fabric_promises.h"
#include "tests/src/decision/guard/phase_promises.h"
#include "tests/src/decision/guard/promise_jobs.h"
#include "tests/src/decision/guard/short_job_promises.h"
#include "tests/src/decision/guard/small_gain_promises.h"

namespace dynamiccl::testing {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Returns the loss that docs/guard.md allows: 1 % of the time at NCCL's choice and the first credit of each
// key; for experiments, two steps and half a per cent of all steps.
double AllowedNs(const SimulatedJob& job) {
  double credit = 0;
  for (const TrueKey& key : job.truth()) credit += kFirstCreditCalls * key.nccl_ns;
  const double step_ns = job.guard().experiment().step_ns();
  return kTimeBudget * job.NcclNs() + credit + kProbingCreditSteps * step_ns +
         kProbingBudget * static_cast<double>(job.now_ns());
}

constexpr int kBadPolicyMinutes = 10;

// The choice of every key takes `ratio` times as long from the first call on. It must be revoked within this
// many calls of a key, in the median and at most.
struct BadChoice {
  const char* name;
  double ratio;
  double median;
  double most;
};
std::vector<Promise> Revoking(const BadChoice& bad, const PromiseOptions& options, Timing timing) {
  return ForEachNoise(bad.name, timing, options, [&](Noise noise, Promise& promise) {
    Spread calls, loss, share_of_allowed;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      job_options.policy_ratio = bad.ratio;
      job_options.trials = false;
      SimulatedJob job(job_options);
      job.RunFor(kBadPolicyMinutes * 60 * kSecond);
      for (size_t key = 0; key < job.truth().size(); ++key) {
        const bool still = job.ChoiceOf(key) == job.truth()[key].configs[11].config;
        calls.Add(static_cast<double>(still ? job.history()[key].calls : job.history()[key].changed_at));
      }
      loss.Add(100 * job.LossShare());
      share_of_allowed.Add(job.LossNs() / AllowedNs(job));
    }
    promise.figures = fmt::format(
        "calls of a key until revoked: median {:.0f}, p95 {:.0f}, most {:.0f}; loss over {} min: most {:.2f} "
        "%, "
        "{:.2f} of the allowed",
        calls.At(0.5), calls.At(0.95), calls.most(), kBadPolicyMinutes, loss.most(), share_of_allowed.most());
    promise.kept = calls.At(0.5) <= bad.median && calls.most() <= bad.most && share_of_allowed.most() <= 1;
  });
}

std::vector<Promise> BadPolicy(const PromiseOptions& options, Timing timing) {
  return Revoking({"bad-policy", 10, 50, 50}, options, timing);
}

// No four calls show that the choice is slower, but the paired samples do.
std::vector<Promise> Slower(const PromiseOptions& options, Timing timing) {
  return Revoking({"slower", 1.2, 200, 400}, options, timing);
}

// In mid-run a confirmed choice becomes ten times slower than NCCL's choice, which stays as it was.
std::vector<Promise> Spoilt(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("spoilt", timing, options, [&](Noise noise, Promise& promise) {
    Spread calls;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      job_options.confirmed_best = true;
      SimulatedJob job(job_options);
      job.RunFor(120 * kSecond);
      const std::vector<KeyHistory> before = job.history();
      std::vector<CollectiveConfig> choices;
      for (size_t key = 0; key < before.size(); ++key) choices.push_back(job.ChoiceOf(key));
      job.SpoilChoices(10);
      std::vector<double> until(before.size(), -1);
      for (int step = 0; step < 2000; ++step) {
        job.RunSteps(1);
        for (size_t key = 0; key < before.size(); ++key) {
          if (until[key] < 0 && job.ChoiceOf(key) != choices[key])
            until[key] = static_cast<double>(job.history()[key].changed_at - before[key].calls);
        }
      }
      for (size_t key = 0; key < before.size(); ++key) {
        if (!choices[key].leaves_nccl_alone()) calls.Add(until[key] < 0 ? 8000 : until[key]);
      }
    }
    promise.figures =
        fmt::format("calls of a key until revoked: median {:.0f}, p95 {:.0f}, most {:.0f} of {} keys",
                    calls.At(0.5), calls.At(0.95), calls.most(), calls.count());
    promise.kept = timing != Timing::kAll || calls.most() <= 50;
  });
}

struct Retuning {
  Spread revoked;  // Steps until no key has a choice that is slower than NCCL's.
  // Time of the transfers divided by their time with the best configs, at three numbers of steps after the
  // change.
  std::array<Spread, 3> over_best;
  static constexpr std::array<int, 3> kSteps{150, 300, 600};
};

double OverBest(const SimulatedJob& job) {
  double chosen = 0, best = 0;
  for (size_t key = 0; key < job.truth().size(); ++key) {
    chosen += job.RatioOf(key, job.ChoiceOf(key)) * job.truth()[key].nccl_ns;
    best += job.truth()[key].BestRatio() * job.truth()[key].nccl_ns;
  }
  return chosen / best;
}

bool IsSlowerAnywhere(const SimulatedJob& job) {
  for (size_t key = 0; key < job.truth().size(); ++key) {
    if (job.RatioOf(key, job.ChoiceOf(key)) > 1.05) return true;
  }
  return false;
}

void Degrade(SimulatedJob& job, Retuning& result) {
  job.RunFor(180 * kSecond);
  job.ChangeFabric(1.5, 1, true);
  int revoked = 0;
  for (int step = 1; step <= Retuning::kSteps.back(); ++step) {
    job.RunSteps(1);
    if (IsSlowerAnywhere(job)) revoked = step;
    for (size_t i = 0; i < result.over_best.size(); ++i) {
      if (step == Retuning::kSteps[i]) result.over_best[i].Add(OverBest(job));
    }
  }
  result.revoked.Add(revoked);
}

// From some call on all transfers take 1.5 times as long, and other configs are the best.
std::vector<Promise> Degraded(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("degraded", timing, options, [&](Noise noise, Promise& promise) {
    Retuning result;
    for (int i = 0; i < options.seeds; ++i) {
      SimulatedJob job(JobOf(options, timing, noise, i));
      Degrade(job, result);
    }
    promise.figures = fmt::format("steps until nothing is slower than NCCL's: median {:.0f}, most {:.0f}; ",
                                  result.revoked.At(0.5), result.revoked.most());
    for (size_t i = 0; i < result.over_best.size(); ++i)
      promise.figures +=
          fmt::format("{} steps after: {:.3f} of the best, {:.3f} at most; ", Retuning::kSteps[i],
                      result.over_best[i].At(0.5), result.over_best[i].most());
    promise.kept = result.over_best[2].At(0.5) <= 1.2;
  });
}

// Nothing changes, so a switch after the first search is a false alarm.
std::vector<Promise> Quiet(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("quiet", timing, options, [&](Noise noise, Promise& promise) {
    int false_alarms = 0;
    int jobs = 0;
    uint64_t dismissed = 0;
    std::string reasons;
    Spread loss;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      job_options.confirmed_best = true;
      SimulatedJob job(job_options);
      job.RunFor(10 * kSecond);
      const size_t first = job.switches().size();
      job.RunFor(options.quiet_minutes * 60 * kSecond);
      false_alarms += static_cast<int>(job.switches().size() - first);
      jobs += job.switches().size() > first ? 1 : 0;
      for (size_t at = first; at < job.switches().size(); ++at)
        reasons += fmt::format("{}{}", reasons.empty() ? "" : ", ", Name(job.switches()[at].reason));
      dismissed += job.guard().detector().dismissed();
      loss.Add(100 * job.LossShare());
    }
    promise.figures = fmt::format(
        "{} switches in {} of {} jobs of {} min ({}), {} alarms dismissed, time {:+.2f} % at most",
        false_alarms, jobs, options.seeds, options.quiet_minutes, reasons, dismissed, loss.most());
    promise.kept = false_alarms == 0;
  });
}

constexpr int64_t kEndOfRun = 1'800'000'000;

// Runs a job that knows nothing, then a second one that begins with the site store that the first wrote.
std::vector<Promise> Store(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("store", timing, options, [&](Noise noise, Promise& promise) {
    uint64_t trials = 0;
    Spread first_loss, worst_trial, end_ratio, second_ratio;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      SimulatedJob first(job_options);
      first.RunFor(600 * kSecond);
      first_loss.Add(first.LossNs() / AllowedNs(first));
      worst_trial.Add(first.worst_trial_ratio());
      double at_end = 0;
      double nccl = 0;
      for (size_t key = 0; key < first.truth().size(); ++key) {
        at_end += first.RatioOf(key, first.ChoiceOf(key)) * first.truth()[key].nccl_ns;
        nccl += first.truth()[key].nccl_ns;
      }
      const std::vector<std::byte> file = FormatSiteStore(LearntAtSite(first.guard(), {}, kEndOfRun));
      const SiteStore store = ParseSiteStore(file, "first run's").value();
      for (const TrueKey& key : first.truth()) {
        const auto confirmed = ConfirmedAtSite(store, {}, key.key, Regime::kNormal, kEndOfRun + 3600);
        if (confirmed) job_options.confirmed[KeyCode(key.key)] = *confirmed;
      }
      SimulatedJob second(job_options);
      second.RunFor(120 * kSecond);
      trials += second.trials();
      end_ratio.Add(at_end / nccl);
      double now = 0;
      for (size_t key = 0; key < second.truth().size(); ++key)
        now += second.RatioOf(key, second.ChoiceOf(key)) * second.truth()[key].nccl_ns;
      second_ratio.Add(now / at_end);
    }
    promise.figures = fmt::format(
        "first run ends at {:.3f} of NCCL's time (median), loss {:.2f} of the allowed at most; second run: "
        "{} trials, "
        "{:.3f} of the first's end at most",
        end_ratio.At(0.5), first_loss.most(), trials, second_ratio.most());
    promise.kept = trials == 0 && second_ratio.most() <= 1.0001 && first_loss.most() <= 1;
  });
}

// One rank is late by the time of three transfers, for which no choice is to blame.
std::vector<Promise> Straggler(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("straggler", timing, options, [&](Noise noise, Promise& promise) {
    int switches = 0;
    int recognised = 0;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      job_options.confirmed_best = true;
      SimulatedJob job(job_options);
      job.RunFor(120 * kSecond);
      const size_t before = job.switches().size();
      job.DelayRanks(3);
      job.RunFor(60 * kSecond);
      switches += static_cast<int>(job.switches().size() - before);
      recognised += job.guard().detector().regime() == Regime::kStraggler ? 1 : 0;
    }
    promise.figures =
        fmt::format("recognised in {} of {} jobs, {} switches", recognised, options.seeds, switches);
    promise.kept = switches == 0 && (timing != Timing::kAll || recognised == options.seeds);
  });
}

struct Comparison {
  int hidden = 0;     // The number of hidden keys.
  int at_policy = 0;  // Of these, those with the policy's choice at the end.
  Spread slower;      // The per cent by which a step then takes longer.
};

// The computation of a simulated step, in ns.
constexpr double kComputeNs = 100e6;

void CompareHidden(JobOptions job_options, double steals, Comparison& result) {
  // Judged by its own time, the policy's choice is the best.
  job_options.policy_ratio = 0.5;
  job_options.transfer_times = 8;
  job_options.hidden_keys = job_options.keys / 2;
  job_options.steals = steals;
  SimulatedJob job(job_options);
  job.RunFor(900 * kSecond);
  int at_policy = 0;
  for (int key = 0; key < job_options.hidden_keys; ++key) {
    const TrueKey& truth = job.truth()[static_cast<size_t>(key)];
    if (job.ChoiceOf(static_cast<size_t>(key)) == truth.configs[11].config) ++at_policy;
  }
  result.hidden += job_options.hidden_keys;
  result.at_policy += at_policy;
  const double share = at_policy / static_cast<double>(job_options.keys);
  result.slower.Add(100 * share * steals * kComputeNs / static_cast<double>(job.guard().steps().step_ns()));
}

// The program does not wait for half of the keys. With the policy's choice for these, the computation that
// runs at the same time becomes slower, or faster.
std::vector<Promise> Hidden(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("hidden", timing, options, [&](Noise noise, Promise& promise) {
    Comparison stolen, given;
    for (int i = 0; i < options.seeds; ++i) {
      CompareHidden(JobOf(options, timing, noise, i), 0.1, stolen);
      CompareHidden(JobOf(options, timing, noise, i), -0.1, given);
    }
    promise.figures = fmt::format(
        "hidden keys at the policy's choice where it slows steps: {} of {}, by {:.2f} % at most; where it "
        "helps: {} of {}",
        stolen.at_policy, stolen.hidden, stolen.slower.most(), given.at_policy, given.hidden);
    promise.kept = 2 * given.at_policy >= given.hidden && stolen.slower.most() <= 1.5;
  });
}

struct Growth {
  int keys = 0;
  int good = 0;      // Keys within 5 % of the best that may be tried, from the first call on.
  double first = 0;  // The mean excess of a key's first 24 calls over the best, summed over keys.
  Spread until;      // The calls of a key until its choice stays good.
};

constexpr int kGrownSteps = 200;
constexpr int kFirstSteps = 6;
constexpr int kCallsOfStep = 4;  // This is the number per key.

void AddGrown(const std::vector<double>& ratios, double best, Growth& result) {
  int good_from = 0;
  for (int step = 0; step < kGrownSteps; ++step) {
    const double over = ratios[static_cast<size_t>(step)] / best - 1;
    if (step < kFirstSteps) result.first += over / kFirstSteps;
    if (over > 0.05) good_from = step + 1;
  }
  ++result.keys;
  result.good += good_from == 0 ? 1 : 0;
  result.until.Add(good_from * kCallsOfStep);
}

void Grow(JobOptions job_options, Growth& result) {
  job_options.class_step = 16;
  SimulatedJob job(job_options);
  job.RunFor(180 * kSecond);
  const size_t before = job.truth().size();
  job.Grow(4, 0.1);
  // ratios[i][s] is the time of new key i's choice at step s, as a multiple of NCCL's time.
  std::vector<std::vector<double>> ratios(before);
  for (int step = 0; step < kGrownSteps; ++step) {
    for (size_t i = 0; i < before; ++i)
      ratios[i].push_back(job.RatioOf(before + i, job.ChoiceOf(before + i)));
    job.RunSteps(1);
  }
  for (size_t i = 0; i < before; ++i) AddGrown(ratios[i], job.truth()[before + i].BestRatio(), result);
}

// All sizes double in mid-run. The job is compared with one whose guard carries no choices over.
std::vector<Promise> Growing(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("growing", timing, options, [&](Noise noise, Promise& promise) {
    Growth carried, not_carried;
    for (int i = 0; i < options.seeds; ++i) {
      JobOptions job_options = JobOf(options, timing, noise, i);
      Grow(job_options, carried);
      job_options.carries = false;
      Grow(job_options, not_carried);
    }
    const auto say = [](Growth& growth) {
      return fmt::format(
          "good at once {} of {} keys, calls until good: median {:.0f}, p75 {:.0f}; first 24 calls "
          "{:+.1f} %",
          growth.good, growth.keys, growth.until.At(0.5), growth.until.At(0.75),
          100 * growth.first / growth.keys);
    };
    promise.figures = fmt::format("carried: {}; not carried: {}", say(carried), say(not_carried));
    promise.kept = carried.good >= not_carried.good && carried.first <= not_carried.first;
  });
}

constexpr PromiseCase kCases[] = {
    {"bad-policy", BadPolicy},   {"slower", Slower},       {"spoilt", Spoilt},
    {"degraded", Degraded},      {"quiet", Quiet},         {"store", Store},
    {"straggler", Straggler},    {"hidden", Hidden},       {"growing", Growing},
    {"odd-fabric", OddFabric},   {"elsewhere", Elsewhere}, {"slow-since", SlowSince},
    {"small-gain", SmallGain},   {"alike", Alike},         {"crowded", Crowded},
    {"two-phases", TwoPhases},   {"short", ShortJobs},     {"short-slower", ShortJobsOfSlowerPolicy},
    {"checkpoints", Checkpoints}};

}  // namespace

std::span<const PromiseCase> PromiseCases() {
  return kCases;
}

}  // namespace dynamiccl::testing
