// SPDX-License-Identifier: Apache-2.0
// Measures how soon each detector notices a change at equal false alarms. Thresholds are set on quiet runs of
// some fabrics, and everything is judged on other fabrics.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "studies/agents/timing/change_detector.h"

namespace dynamiccl::agents {

// One false alarm is allowed in this many calls.
inline constexpr uint64_t kCallsAFalseAlarm = 20'000;

// A figure with the ends of its 95 % confidence interval.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Alarms in runs without an event.
struct QuietResult {
  uint64_t calls = 0;
  // Number of false alarms.
  uint64_t alarms = 0;
  // Number of alarms at which the machine itself changed, which nobody intended (real_change.h).
  uint64_t real = 0;
  // Number of false alarms in kCallsAFalseAlarm calls, with the interval of a Poisson count.
  Estimate Rate() const;
};

// All runs with one event of one strength.
struct EventResult {
  TimingEvent event = TimingEvent::kDegraded;
  double factor = 1;
  // Median over runs of the factor by which transfers (for a straggler, transfer and skew) became longer.
  double seen_effect = 1;
  // Delay of each run, in calls of one key; infinite if the change was not noticed.
  std::vector<double> delays;

  double Quantile(double share) const;
  // The interval is that of a bootstrap over runs.
  Estimate Median() const;
  double MissedShare() const;
};

// One detector at one threshold.
struct DetectorStudy {
  std::string name;
  double threshold = 0;
  bool tells_regimes = false;
  // The result on the runs where the threshold was set. `held` is the result on the others.
  QuietResult learnt;
  QuietResult held;
  std::vector<EventResult> events;
  // [event][regime]: runs by the regime that was reported first. Row kQuiet counts all alarms in quiet runs.
  std::array<std::array<uint64_t, kRegimes>, kTimingEvents> said{};
};

// One kind at several thresholds. It shows how many calls of delay one false alarm fewer costs.
struct OperatingCurve {
  std::string name;
  // By ascending threshold.
  std::vector<DetectorStudy> points;
};

// All detectors on one set of runs.
struct DatasetStudy {
  std::string name;
  // Number of runs with an event.
  size_t runs = 0;
  // Median load of the machine; 0 if simulated.
  double load = 0;
  // Share of the calls of held-out quiet runs at which the machine changed.
  double really_changed = 0;
  std::vector<DetectorStudy> detectors;
  // Kinds with higher thresholds, for which the rate of false alarms on the learning fabrics is allowed with
  // confidence (AllowedSurely). Empty if there are too few quiet calls for that.
  std::vector<DetectorStudy> surely;
  std::vector<OperatingCurve> curves;
};

// Settings of the study.
struct TimingStudySettings {
  uint64_t seed = 1;
  // Folder of recorded runs. If it is empty, only modelled noise is used.
  std::string runs;
  int head_iterations = 600;
  // Number of streams of each event and factor.
  int simulated = 120;
  // Number of quiet calls of modelled noise for setting thresholds. Judging uses the same number again.
  uint64_t modelled_quiet_calls = 200'000;
};

// An alarm: at which call, and for which regime.
struct Noticed {
  size_t call = 0;
  Regime regime = Regime::kNormal;
};
// All alarms of a fresh detector over the run.
std::vector<Noticed> AlarmsOf(const DetectorKind& kind, double threshold, const TimingRun& run);

// The least threshold, to within 1 %, at which `quiet` has at most `allowed` false alarms.
double ThresholdOf(const DetectorKind& kind, const std::vector<TimingRun>& quiet, uint64_t allowed);

// The number of false alarms at a rate of one in kCallsAFalseAlarm calls, rounded down.
uint64_t AllowedAt(uint64_t calls);
// The largest number of false alarms whose rate has an upper end of at most one in kCallsAFalseAlarm calls.
// Empty if so few calls cannot show that.
std::optional<uint64_t> AllowedSurely(uint64_t calls);

// Judges a detector at `threshold` on runs with and without events.
DetectorStudy Judge(const DetectorKind& kind, double threshold, const std::vector<TimingRun>& runs);

// Runs the whole study. `say` receives a line before each step that takes long.
Result<std::vector<DatasetStudy>> StudyTiming(const TimingStudySettings& settings,
                                              const std::function<void(const std::string&)>& say);

// The study as Markdown tables, and as JSON.
std::string FormatTables(const std::vector<DatasetStudy>& study);
std::string FormatJson(const std::vector<DatasetStudy>& study);

}  // namespace dynamiccl::agents
