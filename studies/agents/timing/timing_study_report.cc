// SPDX-License-Identifier: Apache-2.0
// The study's results as Markdown tables and as JSON, and the statistics behind them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/statistics.h"
#include "studies/agents/timing/timing_study.h"

namespace dynamiccl::agents {
namespace {

std::string Calls(double calls) {
  return std::isfinite(calls) ? fmt::format("{:.0f}", calls) : "-";
}

std::string Format(const EventResult& result) {
  const Estimate median = result.Median();
  return fmt::format("| {} {:.2f}x | {:.2f}x | {} | {} ({} to {}) | {} | {:.0f} % |", Name(result.event),
                     result.factor, result.seen_effect, result.delays.size(), Calls(median.value),
                     Calls(median.low), Calls(median.high), Calls(result.Quantile(0.9)),
                     100 * result.MissedShare());
}

std::string FormatRegimes(const DetectorStudy& detector) {
  // The columns of the table.
  constexpr Regime kShown[] = {Regime::kDegradedLink, Regime::kCongested, Regime::kStraggler,
                               Regime::kNormal};
  std::string text = fmt::format(
      "\n{}\n\n| true | degraded link | congested | straggler | normal |\n|---|---|---|---|---|\n",
      detector.name);
  for (size_t event = 0; event < detector.said.size(); ++event) {
    text += fmt::format("| {} |", event == 0 ? "quiet (false alarms and real changes)"
                                             : Name(static_cast<TimingEvent>(event)));
    for (const Regime regime : kShown)
      text += fmt::format(" {} |", detector.said[event][static_cast<size_t>(regime)]);
    text += "\n";
  }
  return text;
}

std::string FormatRates(const DetectorStudy& d) {
  const Estimate held = d.held.Rate();
  return fmt::format("| {} | {:.2f} | {:.2f} ({} in {}) | {:.2f} ({:.2f} to {:.2f}; {} in {}) | {} |", d.name,
                     d.threshold, d.learnt.Rate().value, d.learnt.alarms, d.learnt.calls, held.value,
                     held.low, held.high, d.held.alarms, d.held.calls, d.held.real);
}

std::string FormatDetectors(const std::vector<DetectorStudy>& detectors) {
  std::string text =
      "\n| detector | threshold | false alarms in 20,000 calls, learnt on | held out (95 %) | real changes, "
      "held out |\n"
      "|---|---|---|---|---|\n";
  for (const DetectorStudy& d : detectors) text += FormatRates(d) + "\n";
  text +=
      "\n| detector | event | seen effect | runs | median delay, calls of a key (95 %) | p90 | missed |\n"
      "|---|---|---|---|---|---|---|\n";
  for (size_t event = 0; event < detectors.front().events.size(); ++event) {
    for (const DetectorStudy& d : detectors)
      text += fmt::format("| {} {}\n", d.name, Format(d.events[event]));
  }
  return text;
}

// The events that show what a threshold costs; FormatJson has all events.
bool IsOfCurve(const EventResult& result) {
  return (result.event == TimingEvent::kDegraded && result.factor <= 1.5) ||
         (result.factor == 1.5 &&
          (result.event == TimingEvent::kCongested || result.event == TimingEvent::kStraggler));
}

std::string FormatCurves(const std::vector<OperatingCurve>& curves) {
  std::string text =
      "\n| detector | threshold | false alarms in 20,000 calls, learnt on | held out (95 %) | real |";
  std::string line = "|---|---|---|---|---|";
  for (const EventResult& result : curves.front().points.front().events) {
    if (!IsOfCurve(result)) continue;
    text += fmt::format(" {} {:.2f}x |", Name(result.event), result.factor);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const OperatingCurve& curve : curves) {
    for (const DetectorStudy& point : curve.points) {
      text += FormatRates(point);
      for (const EventResult& result : point.events) {
        if (IsOfCurve(result))
          text += fmt::format(" {}, {:.0f} % |", Calls(result.Quantile(0.5)), 100 * result.MissedShare());
      }
      text += "\n";
    }
  }
  return text;
}

using Json = nlohmann::ordered_json;

Json Finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json ToJson(const Estimate& estimate) {
  return {{"value", Finite(estimate.value)}, {"low", Finite(estimate.low)}, {"high", Finite(estimate.high)}};
}
Json ToJson(const QuietResult& quiet) {
  return {{"calls", quiet.calls},
          {"alarms", quiet.alarms},
          {"real_changes", quiet.real},
          {"in_20000", ToJson(quiet.Rate())}};
}

Json ToJson(const DetectorStudy& detector) {
  Json events = Json::array();
  for (const EventResult& result : detector.events) {
    events.push_back({{"event", Name(result.event)},
                      {"factor", result.factor},
                      {"seen_effect", result.seen_effect},
                      {"runs", result.delays.size()},
                      {"median_calls_of_a_key", ToJson(result.Median())},
                      {"p90_calls_of_a_key", Finite(result.Quantile(0.9))},
                      {"missed", result.MissedShare()}});
  }
  return {{"detector", detector.name},         {"threshold", detector.threshold},
          {"learnt", ToJson(detector.learnt)}, {"held", ToJson(detector.held)},
          {"events", std::move(events)},       {"said", detector.said}};
}

Json AllToJson(const std::vector<DetectorStudy>& detectors) {
  Json all = Json::array();
  for (const DetectorStudy& detector : detectors) all.push_back(ToJson(detector));
  return all;
}

}  // namespace

// Garwood's interval of a Poisson count (Biometrika 28, 1936), by the approximation of Wilson and Hilferty.
Estimate QuietResult::Rate() const {
  if (calls == 0) return {};
  const double scale = static_cast<double>(kCallsAFalseAlarm) / static_cast<double>(calls);
  const auto k = static_cast<double>(alarms);
  const double low = alarms == 0 ? 0 : k * std::pow(1 - 1 / (9 * k) - 1.96 / (3 * std::sqrt(k)), 3);
  const double high = (k + 1) * std::pow(1 - 1 / (9 * (k + 1)) + 1.96 / (3 * std::sqrt(k + 1)), 3);
  return {k * scale, low * scale, high * scale};
}

double EventResult::Quantile(double share) const {
  return dynamiccl::Quantile(delays, share);
}

Estimate EventResult::Median() const {
  // Number of draws of the bootstrap.
  constexpr int kDraws = 1000;
  std::mt19937_64 random(1);
  std::vector<double> medians;
  for (int draw = 0; draw < kDraws && !delays.empty(); ++draw) {
    std::vector<double> drawn;
    for (size_t i = 0; i < delays.size(); ++i) drawn.push_back(delays[random() % delays.size()]);
    medians.push_back(MedianInPlace(drawn));
  }
  const ConfidenceInterval interval = BootstrapInterval(std::move(medians));
  return {Quantile(0.5), interval.low, interval.high};
}

double EventResult::MissedShare() const {
  const auto missed = std::count_if(delays.begin(), delays.end(), [](double d) { return !std::isfinite(d); });
  return delays.empty() ? 0 : static_cast<double>(missed) / static_cast<double>(delays.size());
}

std::string FormatTables(const std::vector<DatasetStudy>& study) {
  std::string text;
  for (const DatasetStudy& set : study) {
    text += fmt::format(
        "\n## {}, {} runs with an event, load {:.1f}; the machine changed at {:.1f} % of the quiet calls\n",
        set.name, set.runs, set.load, 100 * set.really_changed);
    text += FormatDetectors(set.detectors);
    text += "\nSurely at most one false alarm on the learnt-on fabrics (95 %):\n";
    text += set.surely.empty() ? "too few quiet calls to be sure of it\n" : FormatDetectors(set.surely);
    text += FormatCurves(set.curves);
    for (const DetectorStudy& d : set.detectors) text += d.tells_regimes ? FormatRegimes(d) : "";
  }
  return text;
}

std::string FormatJson(const std::vector<DatasetStudy>& study) {
  Json sets = Json::array();
  for (const DatasetStudy& set : study) {
    Json curves = Json::array();
    for (const OperatingCurve& curve : set.curves)
      curves.push_back({{"detector", curve.name}, {"points", AllToJson(curve.points)}});
    sets.push_back({{"set", set.name},
                    {"runs", set.runs},
                    {"load", set.load},
                    {"really_changed", set.really_changed},
                    {"detectors", AllToJson(set.detectors)},
                    {"surely", AllToJson(set.surely)},
                    {"curves", std::move(curves)}});
  }
  return Json{{"schema", 1}, {"sets", std::move(sets)}}.dump(1) + "\n";
}

}  // namespace dynamiccl::agents
