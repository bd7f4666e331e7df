// SPDX-License-Identifier: Apache-2.0
// How soon each detector notices a change at equal false alarms: thresholds are set on quiet runs of some
// fabrics, everything is judged on other fabrics.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/timing/change_detector.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// Of calls, one in so many may be a false alarm.
inline constexpr uint64_t kCallsAFalseAlarm = 20'000;

// A figure with the ends of its 95 % interval.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct QuietResult {
  uint64_t calls = 0;
  uint64_t alarms = 0;  // false ones
  uint64_t real = 0;    // alarms where the machine itself changed (real_change.h), which nobody planned
  // False ones in kCallsAFalseAlarm calls; the interval is that of a Poisson count.
  Estimate Rate() const;
};

struct EventResult {
  TimingEvent event = TimingEvent::kDegraded;
  double factor = 1;
  double seen_effect = 1;  // median over runs of how many times as long transfers (a straggler's skew) became
  std::vector<double> delays;  // of each run, in calls of a key; infinite: not noticed

  double Quantile(double share) const;
  // By bootstrap over runs.
  Estimate Median() const;
  double MissedShare() const;
};

struct DetectorStudy {
  std::string name;
  double threshold = 0;
  bool tells_regimes = false;
  QuietResult learnt;  // where the threshold was set
  QuietResult held;
  std::vector<EventResult> events;
  // [event][regime]: runs noticed, by what was said first. In row kQuiet false alarms.
  std::array<std::array<uint64_t, kRegimes>, kTimingEvents> said{};
};

// One kind at several thresholds: what a false alarm less costs in calls.
struct OperatingCurve {
  std::string name;
  std::vector<DetectorStudy> points;  // by threshold
};

struct DatasetStudy {
  std::string name;
  size_t runs = 0;            // with an event
  double load = 0;            // median of the machine's, 0: simulated
  double really_changed = 0;  // share of the calls of held-out quiet runs at which the machine changed
  std::vector<DetectorStudy> detectors;
  // Kinds whose thresholds were set so high that their false alarms on the learnt-on fabrics are surely at
  // most one (AllowedSurely); none where there are too few quiet calls to be sure of it.
  std::vector<DetectorStudy> surely;
  std::vector<OperatingCurve> curves;
};

struct TimingStudySettings {
  uint64_t seed = 1;
  std::string runs;  // folder; empty: modelled noise alone
  int head_iterations = 600;
  int simulated = 120;                      // streams of each event and factor
  uint64_t modelled_quiet_calls = 200'000;  // to learn from, and as many to judge by
};

// Which call of a run is noticed first, from `changed` on, and as what.
struct Noticed {
  size_t call = 0;
  Regime regime = Regime::kNormal;
};
std::vector<Noticed> AlarmsOf(const DetectorKind& kind, double threshold, const TimingRun& run);

// The least threshold, within a hundredth, at which `quiet` has at most `allowed` false alarms.
double ThresholdOf(const DetectorKind& kind, const std::vector<TimingRun>& quiet, uint64_t allowed);

// One false alarm in kCallsAFalseAlarm calls.
uint64_t AllowedAt(uint64_t calls);
// The most false alarms whose rate has its upper end at one in kCallsAFalseAlarm calls; none where so few
// calls cannot say so.
std::optional<uint64_t> AllowedSurely(uint64_t calls);

// `threshold` on runs with and without events.
DetectorStudy Judge(const DetectorKind& kind, double threshold, const std::vector<TimingRun>& runs);

// `say`: one line about each thing that takes long.
Result<std::vector<DatasetStudy>> StudyTiming(const TimingStudySettings& settings,
                                              const std::function<void(const std::string&)>& say);

std::string FormatTables(const std::vector<DatasetStudy>& study);
std::string FormatJson(const std::vector<DatasetStudy>& study);

}  // namespace dynamiccl::agents
