// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/config_turns.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/ab/rule_settings.h"

namespace dynamiccl {
namespace {

// One round more than the interval needs, since a turn with an unusual number of calls is left out.
constexpr size_t kRoundsPlanned = kFewestRounds + 1;
// Turns begin after about so many calls (docs/ab.md), and after a few steps where these have many calls.
constexpr size_t kCallsBeforeTurns = 140;
constexpr size_t kStepsBeforeTurns = 7;
constexpr size_t kMostFaster = 2;

}  // namespace

void CutToSteps(size_t steps, size_t calls, CandidateList& list) {
  const size_t before = std::max(kStepsBeforeTurns, kCallsBeforeTurns / std::max<size_t>(calls, 1));
  const size_t of_setting = kRoundsPlanned * kStepsOfTurn;
  const size_t settings = (steps - std::min(steps, before)) / of_setting;
  const size_t most = settings == 0 ? 0 : settings - 1;
  if (list.configs.size() <= most) return;
  list.left_out.push_back(
      fmt::format("{} of NCCL's configs were not tried: a start has {} steps; the first config needs {}, and "
                  "each further one {} more",
                  list.configs.size() - most, steps, before + 2 * of_setting, of_setting));
  list.configs.resize(most);
}

std::vector<std::string> SettingsInTurn(const CandidateList& list) {
  std::vector<std::string> names = {"default"};
  for (const Candidate& candidate : list.configs) names.push_back(candidate.config);
  return names;
}

Result<std::string> RulesInTurn(const CandidateList& list, const std::string& folder) {
  std::string paths;
  for (size_t i = 0; i < list.configs.size(); ++i) {
    const std::string path = fmt::format("{}/{}.toml", folder, i);
    DYNAMICCL_TRY(const std::string rules, RulesOfSetting(list.configs[i].config));
    DYNAMICCL_CHECK_OK(WriteTextFile(path, rules));
    paths += ":" + path;
  }
  return paths;
}

std::vector<std::string> FasterInTurns(const TurnComparison& comparison) {
  std::vector<SettingTimes> faster;
  for (const SettingTimes& setting : comparison.settings)
    if (setting.interval.high < 1) faster.push_back(setting);
  std::ranges::stable_sort(faster, {}, &SettingTimes::ratio);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(faster.size(), kMostFaster); ++i) names.push_back(faster[i].name);
  return names;
}

void KeepFaster(const std::vector<std::string>& faster, CandidateList& list) {
  const size_t tried = list.configs.size();
  std::erase_if(list.configs, [&](const Candidate& candidate) {
    return std::ranges::find(faster, candidate.config) == faster.end();
  });
  if (tried > list.configs.size())
    list.left_out.push_back(fmt::format("{} of NCCL's configs were not faster in turns within one start",
                                        tried - list.configs.size()));
}

}  // namespace dynamiccl
