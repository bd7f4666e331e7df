// SPDX-License-Identifier: Apache-2.0
// The course of the study. It trains the recurrent head on learning data and assembles data sets (recorded,
// resampled, modelled). Then it sets each detector's threshold on the learning part and judges it on the
// held-out part.
#include "studies/agents/timing/timing_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "src/base/statistics.h"
#include "src/decision/guard/time_reference.h"
#include "studies/agents/timing/real_change.h"
#include "studies/agents/timing/recurrent_head.h"
#include "studies/agents/timing/simulated_timing.h"

namespace dynamiccl::agents {
namespace {

using Say = std::function<void(const std::string&)>;
using Kinds = std::vector<std::unique_ptr<DetectorKind>>;
using Runs = std::vector<TimingRun>;

// The delay of a change that was not noticed.
constexpr double kNever = std::numeric_limits<double>::infinity();
// Strengths of the inserted changes.
constexpr double kFactors[] = {1.25, 1.5, 2};
constexpr TimingEvent kPutIn[] = {TimingEvent::kDegraded, TimingEvent::kCongested, TimingEvent::kStraggler};
// Number of calls of a modelled stream, and of those before its change, which let references settle.
constexpr size_t kModelledCalls = 5200, kModelledBefore = 4000;
// The same numbers for streams from recorded runs, which are shorter.
constexpr size_t kResampledCalls = 1400, kResampledBefore = 600;
// Number of calls of a modelled quiet run.
constexpr size_t kQuietRun = 10'000;
// Share of a modelled job's keys that a change slows.
constexpr double kSlowedKeys = 0.6;
// Number of ranks of the larger modelled job.
constexpr int kManyRanks = 16;
// Points of an operating curve, as multiples of the threshold that was set on the learning fabrics.
constexpr double kCurve[] = {0.5, 0.7, 1, 1.4, 2, 2.8};
// Chosen on modelled noise. With this value there are no more false alarms in 200,000 calls than without it,
// and changes are detected sooner than with 12 or 16.
constexpr double kEarlyNoiseTimes = 8;

// Quiet runs to set thresholds on, and runs to judge on.
struct Dataset {
  std::string name;
  // Quiet runs on which thresholds are set.
  Runs learnt;
  Runs held;
};

void TakeQuiet(const std::vector<Noticed>& alarms, const TimingRun& run, QuietResult& quiet) {
  quiet.calls += run.calls.size();
  for (const Noticed& alarm : alarms) ++(ReallyChanged(run, alarm.call) ? quiet.real : quiet.alarms);
}

QuietResult QuietIn(const DetectorKind& kind, double threshold, const Runs& quiet) {
  QuietResult result;
  for (const TimingRun& run : quiet) TakeQuiet(AlarmsOf(kind, threshold, run), run, result);
  return result;
}

Runs Only(const Runs& runs, bool quiet) {
  Runs some;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(some),
               [=](const TimingRun& run) { return run.quiet() == quiet; });
  return some;
}

// Fabrics for learning have names that start with "learn-".
bool IsOfLearning(const TimingRun& run) {
  return run.fabric.starts_with("learn-");
}

// The factor by which times became longer after the event: the median over keys.
double SeenEffect(const TimingRun& run) {
  std::map<uint64_t, std::array<std::vector<double>, 2>> by_key;
  for (size_t i = 0; i < run.calls.size(); ++i) {
    const TimedCall& call = run.calls[i];
    const double ns =
        run.event == TimingEvent::kStraggler ? call.transfer_ns + call.skew_ns : call.transfer_ns;
    by_key[call.key][i < run.changed ? 0 : 1].push_back(ns);
  }
  std::vector<double> ratios;
  for (auto& [key, times] : by_key) {
    if (!times[0].empty() && !times[1].empty())
      ratios.push_back(MedianInPlace(times[1]) / MedianInPlace(times[0]));
  }
  return ratios.empty() ? 1 : MedianInPlace(ratios);
}

EventResult& ResultOf(DetectorStudy& study, const TimingRun& run) {
  for (EventResult& result : study.events) {
    if (result.event == run.event && result.factor == run.factor) return result;
  }
  study.events.push_back({run.event, run.factor, 1, {}});
  return study.events.back();
}

void TakeEvent(const std::vector<Noticed>& alarms, const TimingRun& run, DetectorStudy& study) {
  const auto first = std::find_if(alarms.begin(), alarms.end(),
                                  [&](const Noticed& noticed) { return noticed.call >= run.changed; });
  double delay = kNever;
  if (first != alarms.end()) {
    const double calls = static_cast<double>(first->call + 1 - run.changed);
    delay = std::ceil(calls / static_cast<double>(run.keys()));
    ++study.said[static_cast<size_t>(run.event)][static_cast<size_t>(first->regime)];
  }
  ResultOf(study, run).delays.push_back(delay);
}

Runs Simulated(int streams, std::mt19937_64& random, const std::function<TimingRun(const PutIn&)>& make) {
  Runs runs;
  for (const TimingEvent event : kPutIn) {
    for (const double factor : kFactors) {
      for (int i = 0; i < streams; ++i) runs.push_back(make({event, factor, random() % 200, 1}));
    }
  }
  return runs;
}

Runs ResampledRuns(const Runs& quiet, int streams, std::mt19937_64& random) {
  if (quiet.empty()) return {};
  return Simulated(streams, random, [&](PutIn put) {
    put.before += kResampledBefore;
    return Resampled(quiet[random() % quiet.size()], put, kResampledCalls, random);
  });
}

using Model = TimingRun (*)(const PutIn& put, size_t calls, std::mt19937_64& random);

TimingRun ModelledOfManyRanks(const PutIn& put, size_t calls, std::mt19937_64& random) {
  return ModelledOfRanks(kManyRanks, put, calls, random);
}

Runs ModelledRuns(Model model, int streams, std::mt19937_64& random) {
  return Simulated(streams, random, [&](PutIn put) {
    put.before += kModelledBefore;
    put.share_of_keys = kSlowedKeys;
    return model(put, kModelledCalls, random);
  });
}

Runs ModelledQuiet(Model model, uint64_t calls, std::mt19937_64& random) {
  Runs runs;
  for (uint64_t made = 0; made < calls; made += kQuietRun) runs.push_back(model({}, kQuietRun, random));
  return runs;
}

void Append(const Runs& more, Runs& runs) {
  runs.insert(runs.end(), more.begin(), more.end());
}

// The runs that the recurrent head learns from; none of them is judged.
Runs HeadRuns(const Runs& recorded, int streams, std::mt19937_64& random) {
  Runs runs;
  std::copy_if(recorded.begin(), recorded.end(), std::back_inserter(runs), IsOfLearning);
  Append(ResampledRuns(Only(runs, true), streams, random), runs);
  Append(ModelledRuns(Modelled, streams, random), runs);
  Append(ModelledQuiet(Modelled, 20 * kQuietRun, random), runs);
  return runs;
}

Dataset ModelledSet(const std::string& name, Model model, const TimingStudySettings& settings,
                    std::mt19937_64& random) {
  Runs held = ModelledQuiet(model, settings.modelled_quiet_calls, random);
  Append(ModelledRuns(model, settings.simulated, random), held);
  return {name, ModelledQuiet(model, settings.modelled_quiet_calls, random), std::move(held)};
}

std::vector<Dataset> DatasetsOf(const TimingStudySettings& settings, const Runs& recorded,
                                std::mt19937_64& random) {
  std::vector<Dataset> sets;
  Runs learnt, held;
  for (const TimingRun& run : recorded) {
    if (!IsOfLearning(run)) {
      held.push_back(run);
    } else if (run.quiet()) {
      learnt.push_back(run);
    }
  }
  if (!recorded.empty()) {
    sets.push_back({"recorded", learnt, held});
    Runs resampled = Only(held, true);
    Append(ResampledRuns(resampled, settings.simulated, random), resampled);
    sets.push_back({"changes put into recorded quiet runs", learnt, std::move(resampled)});
  }
  sets.push_back(ModelledSet("modelled noise", Modelled, settings, random));
  sets.push_back(ModelledSet("modelled noise, 16 ranks", ModelledOfManyRanks, settings, random));
  return sets;
}

Kinds KindsOf(const RecurrentHead& head) {
  Kinds kinds;
  kinds.push_back(ShippedKind());
  kinds.push_back(EarlyKind(kEarlyNoiseTimes));
  kinds.push_back(CusumKind());
  kinds.push_back(WinsorisedCusumKind());
  kinds.push_back(PageHinkleyKind());
  kinds.push_back(BayesianKind());
  kinds.push_back(RecurrentKind(head));
  return kinds;
}

DetectorStudy JudgeNamed(const DetectorKind& kind, const std::string& name, double threshold,
                         const Dataset& set) {
  DetectorStudy study = Judge(kind, threshold, set.held);
  study.name = name;
  study.learnt = QuietIn(kind, threshold, set.learnt);
  return study;
}

uint64_t CallsOf(const Runs& runs) {
  uint64_t calls = 0;
  for (const TimingRun& run : runs) calls += run.calls.size();
  return calls;
}

// Each of the two detectors gets half of the allowed false alarms. The search for a common threshold then
// distributes the rest.
std::unique_ptr<DetectorKind> KindOfBoth(const Runs& quiet) {
  const uint64_t half = AllowedAt(CallsOf(quiet)) / 2;
  return TogetherKind(ThresholdOf(*ShippedKind(), quiet, half),
                      ThresholdOf(*WinsorisedCusumKind(), quiet, half));
}

OperatingCurve CurveOf(const DetectorKind& kind, double threshold, const Dataset& set) {
  OperatingCurve curve{kind.name(), {}};
  for (const double times : kCurve)
    curve.points.push_back(JudgeNamed(kind, kind.name(), times * threshold, set));
  return curve;
}

void StudyKind(const DetectorKind& kind, const Dataset& set, DatasetStudy& study) {
  const uint64_t calls = CallsOf(set.learnt);
  const double threshold = ThresholdOf(kind, set.learnt, AllowedAt(calls));
  study.detectors.push_back(JudgeNamed(kind, kind.name(), threshold, set));
  // The thresholds of other kinds do not measure evidence that could be doubled.
  if (!kind.has_curve()) return;
  study.curves.push_back(CurveOf(kind, threshold, set));
  if (const auto allowed = AllowedSurely(calls))
    study.surely.push_back(JudgeNamed(kind, kind.name(), ThresholdOf(kind, set.learnt, *allowed), set));
}

DatasetStudy StudyDataset(const Dataset& set, const Kinds& kinds, const Say& say) {
  DatasetStudy study;
  study.name = set.name;
  std::vector<double> loads;
  for (const TimingRun& run : set.held) {
    study.runs += run.quiet() ? 0 : 1;
    loads.push_back(run.load);
  }
  const Runs quiet = Only(set.held, true);
  for (const TimingRun& run : quiet)
    study.really_changed += ShareReallyChanged(run) / static_cast<double>(quiet.size());
  study.load = MedianInPlace(loads);
  study.detectors.push_back(JudgeNamed(*kinds.front(), "shipped, as it is", 1, set));
  const auto both = KindOfBoth(set.learnt);
  for (const auto& kind : kinds) {
    say(fmt::format("{}: {}", set.name, kind->name()));
    StudyKind(*kind, set, study);
  }
  say(fmt::format("{}: {}", set.name, both->name()));
  StudyKind(*both, set, study);
  return study;
}

}  // namespace

std::vector<Noticed> AlarmsOf(const DetectorKind& kind, double threshold, const TimingRun& run) {
  const auto detector = kind.Make(threshold);
  std::vector<Noticed> alarms;
  for (size_t i = 0; i < run.calls.size(); ++i) {
    if (const auto regime = detector->Take(run.calls[i])) alarms.push_back({i, *regime});
  }
  return alarms;
}

uint64_t AllowedAt(uint64_t calls) {
  return calls / kCallsAFalseAlarm;
}

std::optional<uint64_t> AllowedSurely(uint64_t calls) {
  std::optional<uint64_t> most;
  for (uint64_t alarms = 0; QuietResult{calls, alarms}.Rate().high <= 1 && alarms < calls; ++alarms)
    most = alarms;
  return most;
}

double ThresholdOf(const DetectorKind& kind, const std::vector<TimingRun>& quiet, uint64_t allowed) {
  double high = kind.usual_threshold(), low = high / 16;
  for (int i = 0; i < 16 && QuietIn(kind, high, quiet).alarms > allowed; ++i) {
    low = high;
    high *= 1.5;
  }
  while (high / low > 1.01) {
    const double middle = std::sqrt(low * high);
    (QuietIn(kind, middle, quiet).alarms > allowed ? low : high) = middle;
  }
  return high;
}

DetectorStudy Judge(const DetectorKind& kind, double threshold, const std::vector<TimingRun>& runs) {
  DetectorStudy study;
  study.name = kind.name();
  study.threshold = threshold;
  study.tells_regimes = kind.tells_regimes();
  for (const TimingRun& run : runs) {
    const std::vector<Noticed> alarms = AlarmsOf(kind, threshold, run);
    if (!run.quiet()) {
      TakeEvent(alarms, run, study);
      continue;
    }
    TakeQuiet(alarms, run, study.held);
    for (const Noticed& alarm : alarms) ++study.said[0][static_cast<size_t>(alarm.regime)];
  }
  for (EventResult& result : study.events) {
    std::vector<double> effects;
    for (const TimingRun& run : runs) {
      if (run.event == result.event && run.factor == result.factor) effects.push_back(SeenEffect(run));
    }
    result.seen_effect = MedianInPlace(effects);
  }
  std::sort(study.events.begin(), study.events.end(), [](const EventResult& a, const EventResult& b) {
    return std::pair(a.event, a.factor) < std::pair(b.event, b.factor);
  });
  return study;
}

Result<std::vector<DatasetStudy>> StudyTiming(const TimingStudySettings& settings, const Say& say) {
  Runs recorded;
  if (!settings.runs.empty()) {
    DYNAMICCL_TRY(recorded, ReadTimingRuns(settings.runs));
  }
  std::mt19937_64 random(settings.seed);
  say("training the head");
  HeadTraining training;
  training.seed = settings.seed;
  training.iterations = settings.head_iterations;
  const RecurrentHead head =
      TrainHead(HeadRuns(recorded, std::max(1, settings.simulated / 3), random), training);
  const Kinds kinds = KindsOf(head);
  std::vector<DatasetStudy> study;
  for (const Dataset& set : DatasetsOf(settings, recorded, random))
    study.push_back(StudyDataset(set, kinds, say));
  return study;
}

}  // namespace dynamiccl::agents
