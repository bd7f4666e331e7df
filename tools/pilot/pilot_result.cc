// SPDX-License-Identifier: Apache-2.0
// Computes the verdict and writes it in three forms. The text reads, for a job whose steps are marked:
//
//   a marked step: 120.41 ms (119.80 to 121.02) by default, 112.30 ms (111.90 to 112.71) with ours ...
//   With ours it is faster (-6.7 %); default against default differed by 0.31 %.
//
// A difference counts only when the quartile ranges do not touch (tools/report/timing.h) and default differs
// from default by at most kMaxNoise; otherwise the verdict says which of the two failed.
#include "tools/pilot/pilot_result.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "tools/version.h"

namespace dynamiccl {
namespace {

// Summary of the given fields over all rounds.
Timing TimingOf(const std::vector<PilotRound>& rounds, std::initializer_list<double PilotRound::*> fields) {
  std::vector<double> samples;
  for (const PilotRound& round : rounds) {
    for (const auto field : fields) samples.push_back(round.*field);
  }
  return Summarize(std::move(samples));
}

const char* Name(PilotVerdict verdict) {
  switch (verdict) {
    case PilotVerdict::kFaster:
      return "faster";
    case PilotVerdict::kSlower:
      return "slower";
    case PilotVerdict::kEqual:
      return "equal within the noise";
    case PilotVerdict::kVoid:
      return "void";
  }
  return "";
}

// Writes the median and the quartiles: "120.41 ms (119.80 to 121.02)".
std::string TimeText(const Timing& timing) {
  return fmt::format("{:.2f} ms ({:.2f} to {:.2f})", timing.median, timing.low, timing.high);
}

// Writes the main sentence of the result. A negative percentage means that ours takes less time.
std::string VerdictText(const PilotResult& result) {
  const Timing by_default = result.DefaultTiming(), ours = result.OursTiming();
  if (result.rounds.empty() && !result.headroom_missing.empty())
    return "Default and ours were not compared: no other choice was looked for. Give more time "
           "(--budget), fewer calls (--replayed-calls), or a --policy.";
  if (result.rounds.empty())
    return "Default and ours were not compared: there is nothing that ours would change.";
  const double percent = 100 * (ours.median / by_default.median - 1);
  const std::string noise = fmt::format("default against default differed by {:.2f} %", 100 * result.Noise());
  if (result.Verdict() == PilotVerdict::kVoid) {
    return fmt::format(
        "Nothing can be said: {}, above {:.0f} %. Repeat on a quieter machine, or with longer runs.", noise,
        100 * kMaxNoise);
  }
  return fmt::format("With ours it is {} ({:+.1f} %); {}.", Name(result.Verdict()), percent, noise);
}

// Returns the lines that text and HTML have in common. The line about coverage is empty when no call was
// recorded.
std::vector<std::string> Lines(const PilotResult& result) {
  std::vector<std::string> lines = {Describe(result.observed.coverage)};
  const char* const what = result.steps_marked ? "a marked step" : "the run, from its first call to its last";
  if (!result.rounds.empty()) {
    lines.push_back(fmt::format("{}: {} by default, {} with ours ({}), {} rounds of default, ours, default",
                                what, TimeText(result.DefaultTiming()), TimeText(result.OursTiming()),
                                result.ours, result.rounds.size()));
  }
  lines.push_back(VerdictText(result));
  if (!result.put_aside.empty())
    lines.push_back(
        "Its rules win when calls are timed alone, not in the job. Leave NCCL's choice; they are in " +
        result.put_aside + ".");
  if (!result.headroom_missing.empty()) lines.push_back("headroom: " + result.headroom_missing);
  return lines;
}

// Median of one arm in a row of the headroom's JSON; empty where the arm is missing.
std::string MedianOf(const Json& row, const char* arm) {
  return row.contains(arm) ? fmt::format("{:.1f}", row[arm]["us_per_call"]["median"].get<double>()) : "";
}

// Shows a row for each collective and size class of the replay's JSON (tools/replay/replay_comparison.h).
HtmlSection HeadroomSection(const Json& headroom) {
  HtmlTable table(
      {{"collective"}, {"size class"}, {"calls", true}, {"default us", true}, {"best us", true}, {"best"}});
  for (const Json& row : headroom["rows"]) {
    table.AddRow({row["collective"], row["size_class"], std::to_string(row["calls"].get<int64_t>()),
                  MedianOf(row, "default"), MedianOf(row, "best"),
                  row.contains("best") ? row["best"]["config"].get<std::string>() : ""});
  }
  return {"headroom", "The job's own calls again, by default and by the best of each size",
          HtmlParagraph("Alone, without the job's computation beside them, at full speed.") + table.Html()};
}

}  // namespace

Timing PilotResult::DefaultTiming() const {
  return TimingOf(rounds, {&PilotRound::default_ms, &PilotRound::default_again_ms});
}

Timing PilotResult::OursTiming() const {
  return TimingOf(rounds, {&PilotRound::ours_ms});
}

double PilotResult::Noise() const {
  const double first = TimingOf(rounds, {&PilotRound::default_ms}).median;
  const double second = TimingOf(rounds, {&PilotRound::default_again_ms}).median;
  return second > 0 ? std::abs(first / second - 1) : 0;
}

PilotVerdict PilotResult::Verdict() const {
  if (rounds.empty() || Noise() > kMaxNoise) return PilotVerdict::kVoid;
  if (!ClearlyDiffer(DefaultTiming(), OursTiming())) return PilotVerdict::kEqual;
  return OursTiming().median < DefaultTiming().median ? PilotVerdict::kFaster : PilotVerdict::kSlower;
}

Status PutAsideSlowerRules(const std::string& rules, const std::string& aside, PilotResult& result) {
  if (result.Verdict() != PilotVerdict::kSlower) return {};
  std::error_code failure;
  std::filesystem::rename(rules, aside, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", aside, failure.message());
  result.put_aside = aside;
  return {};
}

std::string Describe(const PilotResult& result) {
  std::string text;
  for (const std::string& line : Lines(result)) text += line.empty() ? "" : line + "\n";
  return text;
}

Json ToJson(const PilotResult& result) {
  Json rounds = Json::array();
  for (const PilotRound& round : result.rounds)
    rounds.push_back({round.default_ms, round.ours_ms, round.default_again_ms});
  return {{"schema", 1},
          {"version", kVersion},
          {"command", result.command},
          {"machine", result.machine},
          {"trace", result.trace},
          {"processes", result.observed.processes},
          {"records", result.observed.records},
          {"lost", result.observed.lost},
          {"coverage", ToJson(result.observed.coverage)},
          {"steps_marked", result.steps_marked},
          {"ours", result.ours},
          {"rounds_ms", rounds},
          {"noise", result.Noise()},
          {"verdict", Name(result.Verdict())},
          {"put_aside", result.put_aside},
          {"headroom", result.headroom},
          {"headroom_missing", result.headroom_missing}};
}

std::string RenderPilot(const PilotResult& result, const NamedTrace& trace) {
  std::vector<HtmlSection> sections = {{"verdict", "What was found", HtmlList(Lines(result))}};
  HtmlTable rounds({{"round"}, {"default ms", true}, {"ours ms", true}, {"default again ms", true}});
  for (size_t i = 0; i < result.rounds.size(); ++i) {
    const PilotRound& round = result.rounds[i];
    rounds.AddRow({std::to_string(i + 1), fmt::format("{:.2f}", round.default_ms),
                   fmt::format("{:.2f}", round.ours_ms), fmt::format("{:.2f}", round.default_again_ms)});
  }
  if (!rounds.empty()) sections.push_back({"rounds", "Default, ours, default", rounds.Html()});
  if (!result.headroom.is_null()) sections.push_back(HeadroomSection(result.headroom));
  sections.push_back(TraceSectionHtml(trace));
  sections.push_back({"how", "How it was measured",
                      HtmlParagraph("Job: " + result.command) + HtmlParagraph("Machine: " + result.machine) +
                          HtmlParagraph(std::string("dynamiccl ") + kVersion)});
  return HtmlPage("DynamICCL pilot", sections);
}

}  // namespace dynamiccl
