// SPDX-License-Identifier: Apache-2.0
// Computes the verdict and writes it in three forms. The text reads:
//
//   tunable 100.0 % of the bytes (not all calls were timed)
//   allreduce=ring/simple/1 against NCCL's choice: 0.893 of the step (0.877 to 0.910), 3 starts, 84 rounds.
//   It is faster: dynamiccl run --rules pilot/best.toml -- ...
#include "tools/pilot/pilot_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/version.h"

namespace dynamiccl {
namespace {

// A job whose calls span less than this share of its time is mostly start-up.
constexpr double kMostOfTheTime = 0.5;

const char* Name(PilotVerdict verdict) {
  switch (verdict) {
    case PilotVerdict::kFaster:
      return "faster";
    case PilotVerdict::kSlower:
      return "slower";
    case PilotVerdict::kNoDifference:
      return "no difference seen";
    case PilotVerdict::kNothing:
      return "nothing to win";
    case PilotVerdict::kVoid:
      return "void";
  }
  return "";
}

// Returns a sentence that says what was compared.
std::string ComparedText(const PilotResult& result) {
  const SettingTimes& ours = result.decided->settings[1];
  const std::string ends = fmt::format("{} start{}, {} rounds.", result.starts, result.starts == 1 ? "" : "s",
                                       result.decided->rounds);
  if (result.Verdict() == PilotVerdict::kVoid)
    return fmt::format("{} against NCCL's choice: {:.3f} of the step, {}", result.ours, ours.ratio, ends);
  return fmt::format("{} against NCCL's choice: {:.3f} of the step ({:.3f} to {:.3f}), {}", result.ours,
                     ours.ratio, ours.interval.low, ours.interval.high, ends);
}

size_t Tried(const PilotResult& result) {
  size_t tried = 0;
  for (const TurnComparison& start : result.searched) tried += start.settings.size() - 1;
  return tried;
}

// Returns a sentence that says what the user should do.
std::string VerdictText(const PilotResult& result) {
  switch (result.Verdict()) {
    case PilotVerdict::kFaster:
      return result.rules.empty()
                 ? "It is faster."
                 : fmt::format("It is faster: dynamiccl run --rules {} -- ...", result.rules);
    case PilotVerdict::kSlower:
      return "It is slower: leave NCCL's choice.";
    case PilotVerdict::kNoDifference:
      return "No difference was seen: leave NCCL's choice.";
    case PilotVerdict::kNothing:
      return fmt::format("None of {} configs was faster in the job: leave NCCL's choice.", Tried(result));
    case PilotVerdict::kVoid:
      return "Nothing can be said: " + (result.why_not.empty()
                                            ? std::string("fewer than six rounds; let the job run longer.")
                                            : result.why_not + ".");
  }
  return "";
}

// Returns a sentence if the job spends most of its time before its first call and after its last one, where
// no choice of NCCL's matters; else an empty text.
std::string StartUpText(const PilotResult& result) {
  const auto wall = static_cast<double>(result.observed.outcome.wall_ns);
  const auto calls = static_cast<double>(result.calls_ns);
  if (calls <= 0 || calls >= kMostOfTheTime * wall) return "";
  return fmt::format(
      "A start of the job took {:.1f} s, {:.1f} s of it before its first call and after its last one, mostly "
      "start-up: ratios are of the steps, not of the whole job.",
      wall * 1e-9, (wall - calls) * 1e-9);
}

// Returns the lines that text and HTML have in common.
std::vector<std::string> Lines(const PilotResult& result) {
  std::vector<std::string> lines;
  if (const std::string coverage = Describe(result.observed.coverage); !coverage.empty())
    lines.push_back(coverage);
  if (result.decided) lines.push_back(ComparedText(result));
  lines.push_back(VerdictText(result));
  if (const std::string start_up = StartUpText(result); !start_up.empty()) lines.push_back(start_up);
  for (const std::string& note : result.notes) lines.push_back("Left out: " + note + ".");
  return lines;
}

// Shows a row for each setting of the comparisons.
HtmlSection SettingsSection(const char* id, const char* title, const char* sentence,
                            const std::vector<TurnComparison>& comparisons) {
  HtmlTable table({{"setting"}, {"step ms", true}, {"of NCCL's", true}, {"95 % interval"}, {"turns", true}});
  for (const TurnComparison& comparison : comparisons) {
    for (const SettingTimes& setting : comparison.settings) {
      const bool first = &setting == &comparison.settings.front();
      const bool known = !first && std::isfinite(setting.interval.high);
      table.AddRow({setting.name, fmt::format("{:.2f}", setting.step_ms),
                    first ? "" : fmt::format("{:.3f}", setting.ratio),
                    known ? fmt::format("{:.3f} to {:.3f}", setting.interval.low, setting.interval.high) : "",
                    std::to_string(setting.turns)});
    }
  }
  return {id, title, HtmlParagraph(sentence) + table.Html()};
}

}  // namespace

PilotVerdict PilotResult::Verdict() const {
  if (!decided) {
    const bool told_apart = std::ranges::any_of(
        searched, [](const TurnComparison& start) { return start.rounds >= kFewestRounds; });
    return why_not.empty() && told_apart ? PilotVerdict::kNothing : PilotVerdict::kVoid;
  }
  const ConfidenceInterval& interval = decided->settings[1].interval;
  if (!std::isfinite(interval.high)) return PilotVerdict::kVoid;
  if (interval.high < 1) return PilotVerdict::kFaster;
  return interval.low > 1 ? PilotVerdict::kSlower : PilotVerdict::kNoDifference;
}

std::string Describe(const PilotResult& result) {
  std::string text;
  for (const std::string& line : Lines(result)) text += line + "\n";
  return text;
}

Json ToJson(const PilotResult& result) {
  Json searched = Json::array();
  for (const TurnComparison& start : result.searched) searched.push_back(ToJson(start));
  return {{"schema", 2},
          {"version", kVersion},
          {"command", result.command},
          {"machine", result.machine},
          {"trace", result.trace},
          {"processes", result.observed.processes},
          {"records", result.observed.records},
          {"lost", result.observed.missing.lost},
          {"replaced", result.observed.missing.replaced},
          {"coverage", ToJson(result.observed.coverage)},
          {"start_ns", result.observed.outcome.wall_ns},
          {"calls_ns", result.calls_ns},
          {"searched", searched},
          {"ours", result.ours},
          {"decided", result.decided ? ToJson(*result.decided) : Json()},
          {"starts", result.starts},
          {"verdict", Name(result.Verdict())},
          {"rules", result.rules},
          {"why_not", result.why_not},
          {"notes", result.notes}};
}

std::string RenderPilot(const PilotResult& result, const NamedTrace& trace) {
  std::vector<HtmlSection> sections = {{"verdict", "What was found", HtmlList(Lines(result))}};
  if (result.decided)
    sections.push_back(SettingsSection(
        "decided", "NCCL's choice and ours, in turns within the job",
        "These starts had no part in the search, so that chance does not flatter what was chosen there.",
        {*result.decided}));
  if (!result.searched.empty())
    sections.push_back(SettingsSection(
        "searched", "The search: each config in turns within the job",
        "The best of many looks better here than it is. The comparison above decides.", result.searched));
  sections.push_back(TraceSectionHtml(trace));
  sections.push_back({"how", "How it was measured",
                      HtmlParagraph("Job: " + result.command) + HtmlParagraph("Machine: " + result.machine) +
                          HtmlParagraph(std::string("dynamiccl ") + kVersion)});
  return HtmlPage("DynamICCL pilot", sections);
}

}  // namespace dynamiccl
