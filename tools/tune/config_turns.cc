// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/config_turns.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "tools/tune/watched_run.h"

namespace dynamiccl {
namespace {

// Rounds (one turn of each setting) that are planned. It is one more than an interval needs, because a turn
// with an unusual number of calls is left out.
constexpr size_t kRoundsPlanned = kFewestRounds + 1;
constexpr size_t kMostFaster = 2;
constexpr size_t kMostOpen = 2;
// A config with a smaller gain does not take turns once more, because a turn's noise is 4 to 19 %.
constexpr double kPromising = 0.98;

// The names of the first `most` of these settings, the fastest first.
std::vector<std::string> Fastest(std::vector<SettingTimes> settings, size_t most) {
  std::ranges::stable_sort(settings, {}, &SettingTimes::ratio);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(settings.size(), most); ++i) names.push_back(settings[i].name);
  return names;
}

}  // namespace

void CutToTurns(size_t turns, CandidateList& list) {
  const size_t settings = turns / kRoundsPlanned;
  const size_t most = settings == 0 ? 0 : settings - 1;
  if (list.configs.size() <= most) return;
  list.left_out.push_back(fmt::format(
      "{} of NCCL's configs were not tried: a start is too short. After the calls that show its steps {} "
      "steps are left, and each config needs {}, NCCL's own choice too: give the script more steps",
      list.configs.size() - most, turns * kStepsOfTurn, kRoundsPlanned * kStepsOfTurn));
  list.configs.resize(most);
}

std::vector<std::string> SettingsInTurn(const CandidateList& list) {
  std::vector<std::string> names = {"default"};
  for (const Candidate& candidate : list.configs) names.push_back(candidate.config);
  return names;
}

TurnVerdicts JudgeConfigs(const TurnComparison& comparison) {
  std::vector<SettingTimes> faster, open;
  double to_beat = kPromising;
  for (const SettingTimes& setting : comparison.settings) {
    if (setting.interval.high >= 1) continue;
    faster.push_back(setting);
    to_beat = std::min(to_beat, setting.ratio);
  }
  for (const SettingTimes& setting : comparison.settings)
    if (setting.interval.high >= 1 && setting.interval.low < 1 && setting.ratio < to_beat)
      open.push_back(setting);
  return {Fastest(std::move(faster), kMostFaster), Fastest(std::move(open), kMostOpen)};
}

void JudgeTurns(const SectionCalls& calls, const std::vector<std::string>& names, JobStart& start) {
  const auto comparison = CompareTurns({calls}, names, kStepsOfTurn);
  if (!comparison) {
    start.failure = "NCCL's configs were not tried: " + comparison.error().message;
    return;
  }
  spdlog::info("NCCL's configs in turns within one start:\n{}", Describe(*comparison));
  if (!comparison->SeesSteps()) {
    start.failure =
        "NCCL's configs were not told apart: the program issues its steps without waiting for them";
    return;
  }
  if (comparison->rounds < kFewestRounds) {
    start.failure =
        fmt::format("NCCL's configs were not told apart: {} rounds of turns are too few", comparison->rounds);
    return;
  }
  start.seen = TextOf(JudgeConfigs(*comparison));
}

std::string TextOf(const TurnVerdicts& verdicts) {
  std::string text = fmt::format("{}", fmt::join(verdicts.faster, " "));
  for (const std::string& name : verdicts.open) text += (text.empty() ? "" : " ") + name + "?";
  return text;
}

TurnVerdicts VerdictsIn(const std::string& text) {
  TurnVerdicts verdicts;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool is_open = word.back() == '?';
    if (is_open) word.pop_back();
    (is_open ? verdicts.open : verdicts.faster).push_back(word);
  }
  return verdicts;
}

void KeepConfigs(const std::vector<std::string>& names, CandidateList& list) {
  std::erase_if(list.configs, [&](const Candidate& candidate) {
    return std::ranges::find(names, candidate.config) == names.end();
  });
}

}  // namespace dynamiccl
