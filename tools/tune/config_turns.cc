// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/config_turns.h"

#include <fmt/format.h>

#include <algorithm>

namespace dynamiccl {
namespace {

// Rounds (one turn of each setting) that are planned. It is one more than an interval needs, because a turn
// with an unusual number of calls is left out.
constexpr size_t kRoundsPlanned = kFewestRounds + 1;
constexpr size_t kMostFaster = 2;

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
