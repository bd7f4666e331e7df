// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/guard/odd_fabric_promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "src/decision/guard/learnt_at_site.h"
#include "tests/src/decision/guard/promise_jobs.h"

namespace dynamiccl::testing {
namespace {

constexpr int kSteps = 400;
constexpr double kNothing = 0.1;

// A kind of job. Its steps vary as on a busy machine.
struct Kind {
  const char* name;
  int keys;
  int calls_of_key;
  int64_t computed_ns;  // In ns per step.
  double step_noise;
  double pace_memory;
  double transfer_times;
  double least_gain;        // The least median share of the possible gain in the whole job.
  int least_jobs;           // A noisy job may find nothing in its time, so the median needs this many jobs.
  double ring_ratio = 0.5;  // Time ratio of one channel of Ring/Simple; 0 if it is like the others.
  double tree_ratio = 0;    // Time ratio of one channel of Tree/Simple; 0 if it is like the others.
  int64_t setup_ns = 0;     // The time that the first use of Tree adds, in ns.
};
constexpr Kind kManyCalls{"24 calls a step", 4, 6, 12'000'000, 0.05, 0, 1, 0.5, 1};
// One channel is good. With the other algorithm it is better still, as for DDP on a slow rail
// (docs/results/step-map.md).
constexpr Kind kTwoGood{"two that are good", 4, 6, 12'000'000, 0.05, 0, 1, 0.5, 9, 0.75, 0.5};
// The good config's connections are set up at its first use, which doubles that step, as NCCL does unless
// NCCL_RUNTIME_CONNECT is 0. In 400 steps a third of such jobs gain nothing (docs/results/guard.md), so only
// the median is held to a gain.
constexpr Kind kConnects{
    "trees, connected at first use", 4, 6, 12'000'000, 0.05, 0, 1, 0, 9, 0, 0.5, 20'000'000};
// PyTorch's FSDP2 and DDP with a small model, as measured on two shared cores (docs/results/guard.md).
constexpr Kind kTenCalls{"10 calls a step", 5, 2, 12'000'000, 0.08, 0.4, 2, 0.5, 1};
constexpr Kind kOneCall{"1 call a step", 1, 1, 6'000'000, 0.1, 0.4, 8, 0.3, 9};

struct Gained {
  Spread share;      // Share of the possible gain in the whole job.
  Spread over_best;  // Time of the transfers with the last choices, divided by that with the best ones.
  Spread loss;       // Share of the job's time, if no config is faster.
  int adopted = 0;   // Jobs in which a config was adopted although none is faster.
  int still = 0;     // Jobs that gain less than kNothing of the possible gain.
};

JobOptions Of(JobOptions job_options, const Kind& kind, bool to_win) {
  job_options.keys = kind.keys;
  job_options.calls_per_step = kind.keys * kind.calls_of_key;
  job_options.step_ns = kind.computed_ns;
  job_options.step_noise = kind.step_noise;
  job_options.pace_memory = kind.pace_memory;
  job_options.transfer_times = kind.transfer_times;
  job_options.switch_calls = std::min(job_options.switch_calls, 5 * job_options.calls_per_step);
  job_options.nothing_to_win = true;
  job_options.one_channel_ratio = to_win ? kind.ring_ratio : 0;
  job_options.one_tree_ratio = to_win ? kind.tree_ratio : 0;
  job_options.timing_cost = 0;
  job_options.setup_ns = kind.setup_ns;
  return job_options;
}

void Lose(const JobOptions& job_options, const Kind& kind, Gained& result) {
  SimulatedJob job(Of(job_options, kind, false));
  job.RunSteps(kSteps);
  result.loss.Add(job.LossNs() / static_cast<double>(job.now_ns()));
  result.adopted += std::any_of(job.switches().begin(), job.switches().end(),
                                [](const auto& each) { return each.reason == GuardReason::kAdopt; });
}

// Returns the share of the possible gain that the job has gained so far.
double GainedBy(const SimulatedJob& job) {
  double nccl = 0, best = 0;
  for (const TrueKey& key : job.truth()) {
    nccl += key.nccl_ns;
    best += key.BestRatio() * key.nccl_ns;
  }
  return -job.LossShare() / (1 - best / nccl);
}

void Gain(const JobOptions& job_options, const Kind& kind, Gained& result) {
  SimulatedJob job(Of(job_options, kind, true));
  job.RunSteps(kSteps);
  double best = 0, chosen = 0;
  for (size_t key = 0; key < job.truth().size(); ++key) {
    const TrueKey& truth = job.truth()[key];
    best += truth.BestRatio() * truth.nccl_ns;
    chosen += job.RatioOf(key, job.ChoiceOf(key)) * truth.nccl_ns;
  }
  const double share = GainedBy(job);
  result.share.Add(share);
  result.still += share < kNothing ? 1 : 0;
  result.over_best.Add(chosen / best);
}

std::string Describe(const Kind& kind, Gained& gained) {
  return fmt::format(
      "{}: gained in {} steps {:.0f} % of what there is (median), {:.0f} % at least, next to nothing in {} "
      "jobs; at "
      "the end {:.3f} of the best (median), {:.3f} at most; where nothing can be won {:.2f} % lost (median), "
      "{:.2f} % at most, "
      "adopted "
      "in {} jobs",
      kind.name, kSteps, 100 * gained.share.At(0.5), 100 * gained.share.At(0), gained.still,
      gained.over_best.At(0.5), gained.over_best.most(), 100 * gained.loss.At(0.5), 100 * gained.loss.most(),
      gained.adopted);
}

constexpr int kFirstSteps = 50;
constexpr int kPlacesBefore = 3;
constexpr double kSlowness = 4;
constexpr int64_t kNow = 1'800'000'000;

// Runs a job in each of three other places, and returns the site store that they leave.
SiteStore FoundElsewhere(const PromiseOptions& options, Timing timing, Noise noise) {
  SiteStore store;
  for (int place = 0; place < kPlacesBefore; ++place) {
    JobOptions job_options = Of(JobOf(options, timing, noise, 1000 + place), kManyCalls, true);
    job_options.slowness = kSlowness;
    SimulatedJob job(job_options);
    job.RunSteps(kSteps);
    store.Learn(LearntAtSite(job.guard(), {.nccl_version = 1u + static_cast<uint32_t>(place)}, kNow));
  }
  return store;
}

struct Told {
  Spread first, whole;  // Share of the possible gain, in the first steps and in all.
  Spread loss;          // Share of the job's time, if no config is faster.
  int adopted = 0;      // Jobs in which a config was adopted although none is faster.
};

void RunTold(JobOptions job_options, ExpectedOf expected, Told& told) {
  job_options.expected = std::move(expected);
  job_options.slowness = kSlowness;
  SimulatedJob job(Of(job_options, kManyCalls, true));
  job.RunSteps(kFirstSteps);
  told.first.Add(GainedBy(job));
  job.RunSteps(kSteps - kFirstSteps);
  told.whole.Add(GainedBy(job));
  SimulatedJob other(Of(job_options, kManyCalls, false));
  other.RunSteps(kSteps);
  told.loss.Add(other.LossNs() / static_cast<double>(other.now_ns()));
  told.adopted += std::any_of(other.switches().begin(), other.switches().end(),
                              [](const auto& each) { return each.reason == GuardReason::kAdopt; });
}

std::string Describe(const char* name, Told& told) {
  return fmt::format(
      "{}: gained {:.0f} % of what there is in {} steps (median), {:.0f} % in {}; where nothing can be won "
      "{:.2f} % lost (median), {:.2f} % at most, adopted in {} jobs",
      name, 100 * told.first.At(0.5), kFirstSteps, 100 * told.whole.At(0.5), kSteps, 100 * told.loss.At(0.5),
      100 * told.loss.most(), told.adopted);
}

constexpr int kJobsWithCheckpoints = 20;
constexpr int kStepsToCheckpoint = 40;
constexpr int kStepsOfCheckpoint = 10;
// If arms paid for every checkpoint during their use, 4 to 6 of 20 jobs would gain almost nothing.
constexpr int kMaxStill = 2;

// Runs a job that pauses every 40 steps for as long as ten steps compute. `i`, the job's number, decides when
// the first pause comes.
void RunWithCheckpoints(SimulatedJob& job, int i) {
  for (int step = 0; step < kSteps; ++step) {
    job.RunSteps(1);
    if ((step + 7 * i) % kStepsToCheckpoint == 0) job.StandStill(kStepsOfCheckpoint * kManyCalls.computed_ns);
  }
}

// Returns the nanoseconds that the job took without its checkpoints.
double NeededNs(const SimulatedJob& job) {
  return static_cast<double>(job.now_ns() -
                             kSteps / kStepsToCheckpoint * kStepsOfCheckpoint * kManyCalls.computed_ns);
}

}  // namespace

std::vector<Promise> Elsewhere(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("elsewhere", timing, options, [&](Noise noise, Promise& promise) {
    const SiteStore store = FoundElsewhere(options, timing, noise);
    Told told, untold;
    for (int i = 0; i < std::max(options.seeds, 3); ++i) {
      const auto expected = [&](const EffectQuestion& question) {
        return ExpectedBy({.store = &store}, question, kNow);
      };
      RunTold(JobOf(options, timing, noise, i), expected, told);
      RunTold(JobOf(options, timing, noise, i), {}, untold);
    }
    promise.figures = Describe("told", told) + "; " + Describe("not told", untold);
    promise.kept = told.first.At(0.5) >= 0.4 && told.whole.At(0.5) >= untold.whole.At(0.5) &&
                   1000 * told.adopted <= options.seeds;
  });
}

std::vector<Promise> SlowSince(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("slow-since", timing, options, [&](Noise noise, Promise& promise) {
    Spread gained, kept;  // With circumstances taken into account, and without.
    for (int i = 0; i < std::max(options.seeds, 3); ++i) {
      SimulatedJob well(Of(JobOf(options, timing, noise, i), kManyCalls, false));
      well.RunSteps(kSteps);
      const SiteStore store = LearntAtSite(well.guard(), {}, kNow);
      JobOptions later = Of(JobOf(options, timing, noise, i), kManyCalls, true);
      later.slowness = kSlowness;
      for (const TrueKey& key : well.truth()) later.confirmed[KeyCode(key.key)] = kLeaveNcclAlone;
      SimulatedJob trusting(later);
      trusting.RunSteps(kSteps);
      kept.Add(GainedBy(trusting));
      later.began_like = [&](const Circumstances& now) { return BeganLike(store, {}, now, kNow); };
      SimulatedJob job(later);
      job.RunSteps(kSteps);
      gained.Add(GainedBy(job));
    }
    promise.figures = fmt::format(
        "gained {:.0f} % of what there is (median); where what was left to NCCL stays so "
        "{:.0f} %",
        100 * gained.At(0.5), 100 * kept.At(0.5));
    promise.kept = gained.At(0.5) >= 0.5;
  });
}

std::vector<Promise> Checkpoints(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("checkpoints", timing, options, [&](Noise noise, Promise& promise) {
    Spread gained, without, loss;
    int still = 0;
    for (int i = 0; i < std::max(options.seeds, kJobsWithCheckpoints); ++i) {
      const JobOptions job_options = JobOf(options, timing, noise, i);
      SimulatedJob job(Of(job_options, kManyCalls, true));
      RunWithCheckpoints(job, i);
      gained.Add(GainedBy(job));
      still += GainedBy(job) < kNothing ? 1 : 0;
      SimulatedJob other(Of(job_options, kManyCalls, true));
      other.RunSteps(kSteps);
      without.Add(GainedBy(other));
      SimulatedJob nothing(Of(job_options, kManyCalls, false));
      RunWithCheckpoints(nothing, i);
      loss.Add(nothing.LossNs() / NeededNs(nothing));
    }
    promise.figures = fmt::format(
        "gained {:.0f} % of what there is (median), next to nothing in {} jobs, {:.0f} % without "
        "checkpoints; "
        "where nothing can be won {:.2f} % lost (median), {:.2f} % at most",
        100 * gained.At(0.5), still, 100 * without.At(0.5), 100 * loss.At(0.5), 100 * loss.most());
    promise.kept = gained.At(0.5) >= 0.8 * without.At(0.5) && still <= kMaxStill;
  });
}

std::vector<Promise> OddFabric(const PromiseOptions& options, Timing timing) {
  return ForEachNoise("odd-fabric", timing, options, [&](Noise noise, Promise& promise) {
    for (const Kind& kind : {kManyCalls, kTwoGood, kConnects, kTenCalls, kOneCall}) {
      Gained gained;
      for (int i = 0; i < std::max(options.seeds, kind.least_jobs); ++i) {
        Gain(JobOf(options, timing, noise, i), kind, gained);
        Lose(JobOf(options, timing, noise, i), kind, gained);
      }
      promise.figures += (promise.figures.empty() ? "" : "; ") + Describe(kind, gained);
      promise.kept &= gained.share.At(0.5) >= kind.least_gain && gained.over_best.At(0.5) <= 1.03 &&
                      1000 * gained.adopted <= options.seeds;
    }
  });
}

}  // namespace dynamiccl::testing
