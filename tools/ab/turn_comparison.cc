// SPDX-License-Identifier: Apache-2.0
// The record of a decision holds the low 8 bits of its table's version. The version is 1 before the first
// turn and grows by one with each turn. It never falls, so the number of a turn follows from the differences
// between consecutive records.
#include "tools/ab/turn_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "src/decision/rule_turns.h"

namespace dynamiccl {
namespace {

// One turn of a communicator: the times at which its calls were issued, in the order of issue.
struct Turn {
  uint32_t number = 0;  // 0: before the first turn
  std::vector<int64_t> issued_ns;
};

// The turns in order; the last one may be incomplete. Several records of one call number count as one call.
std::vector<Turn> TurnsOf(const SectionCalls& calls, uint32_t communicator) {
  std::vector<Turn> turns;
  std::optional<uint64_t> last;
  uint8_t version = 0;
  for (const TraceCall& call : calls.calls) {
    if (call.communicator != communicator || !call.decision) continue;
    // Version 0 means that no decision table was in use, which happens only before the first turn. After the
    // first turn, the low bits of version 256 are 0 as well.
    if (turns.empty() && call.decision->table_version == 0) continue;
    const uint64_t number = call.issued.call.call_number;
    if (last == number) continue;
    last = number;
    const auto passed = static_cast<uint8_t>(call.decision->table_version - version);
    if (turns.empty() || passed > 0) {
      const uint32_t before = turns.empty() ? 0 : turns.back().number;
      turns.push_back({turns.empty() ? passed - 1u : before + passed, {}});
      version = call.decision->table_version;
    }
    turns.back().issued_ns.push_back(call.issued.issued_ns);
  }
  return turns;
}

// Returns the turns of the communicator with the most turns.
std::vector<Turn> BusiestTurns(const SectionCalls& calls) {
  std::vector<Turn> most;
  for (const auto& [number, info] : calls.communicators) {
    std::vector<Turn> turns = TurnsOf(calls, number);
    if (turns.size() > most.size()) most = std::move(turns);
  }
  return most;
}

// The most frequent number of calls in a turn.
size_t UsualCalls(const std::vector<Turn>& turns) {
  std::map<size_t, size_t> counts;
  for (const Turn& turn : turns) ++counts[turn.issued_ns.size()];
  const auto usual = std::max_element(counts.begin(), counts.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  return usual == counts.end() ? 0 : usual->first;
}

// The logarithm of a step's time in nanoseconds. The outer key is the start of the job and the round of turns
// in it; the inner key is the setting.
using LogTimes = std::map<std::pair<size_t, uint32_t>, std::map<size_t, double>>;

// Adds the step times of all complete turns of one start of the job. A turn's first step is left out: it
// still shows effects of the previous setting.
void AddTimes(size_t start, const std::vector<Turn>& turns, size_t settings, uint32_t turn_steps,
              size_t calls, LogTimes& times) {
  for (size_t i = 0; i + 1 < turns.size(); ++i) {
    const Turn& turn = turns[i];
    if (turn.number == 0 || turn.issued_ns.size() != calls || turns[i + 1].number != turn.number + 1)
      continue;
    const int64_t from = turn.issued_ns[calls / turn_steps], to = turns[i + 1].issued_ns.front();
    if (to <= from) continue;
    const uint32_t round = (turn.number - 1) / static_cast<uint32_t>(settings);
    const double steps = turn_steps - 1;
    times[{start, round}][SetOfTurn(turn.number, settings)] =
        std::log(static_cast<double>(to - from) / steps);
  }
}

// Returns, for each round that has both, the log time of `setting` minus the log time of the first setting.
std::vector<double> OverFirst(const LogTimes& times, size_t setting) {
  std::vector<double> over;
  for (const auto& [round, of_round] : times) {
    const auto first = of_round.find(0), other = of_round.find(setting);
    if (first != of_round.end() && other != of_round.end()) over.push_back(other->second - first->second);
  }
  return over;
}

SettingTimes SettingOf(const LogTimes& times, size_t setting, const std::string& name) {
  SettingTimes of{name};
  for (const auto& [round, of_round] : times) {
    const auto found = of_round.find(setting);
    if (found != of_round.end()) of.samples_ms.push_back(std::exp(found->second) * 1e-6);
  }
  of.turns = of.samples_ms.size();
  of.step_ms = Median(of.samples_ms);
  if (setting == 0) return of;
  const MiddleEstimate estimate = SignedRankEstimate(OverFirst(times, setting));
  of.ratio = std::exp(estimate.middle);
  of.interval = {std::exp(estimate.interval.low), std::exp(estimate.interval.high)};
  return of;
}

// Returns the noise of one turn, as a share of the step time. It is the spread of each setting's ratio to the
// first setting, divided by sqrt(2), because a ratio has the noise of two turns.
double NoiseOf(const LogTimes& times, size_t settings) {
  std::vector<double> deviations;
  for (size_t setting = 1; setting < settings; ++setting) {
    std::vector<double> over = OverFirst(times, setting);
    const double middle = Median(over);
    deviations.push_back(RobustDeviationInPlace(middle, over));
  }
  return Median(deviations) / std::sqrt(2.0);
}

// Computes TurnComparison::steady_share of one start of the job, which has at least two turns.
double SteadyShareOf(const std::vector<Turn>& turns) {
  std::vector<double> lengths;
  for (size_t i = 0; i + 1 < turns.size(); ++i)
    lengths.push_back(static_cast<double>(turns[i + 1].issued_ns.front() - turns[i].issued_ns.front()));
  const auto total = static_cast<double>(turns.back().issued_ns.front() - turns.front().issued_ns.front());
  return total > 0 ? Median(lengths) * static_cast<double>(lengths.size()) / total : 1;
}

const char* VerdictOf(const SettingTimes& setting) {
  if (setting.interval.high < 1) return "faster";
  if (setting.interval.low > 1) return "slower";
  return "no difference seen";
}

}  // namespace

double TurnComparison::MoreSteps() const {
  double widest = 0;
  for (const SettingTimes& setting : settings)
    widest = std::max(widest, std::log(setting.interval.high / setting.interval.low) / 2);
  if (!std::isfinite(widest)) return -1;
  const auto done = static_cast<double>(rounds * settings.size() * turn_steps);
  return std::max(0.0, done * (std::pow(widest / kToldApart, 2) - 1));
}

Result<TurnComparison> CompareTurns(const std::vector<SectionCalls>& starts,
                                    const std::vector<std::string>& names, uint32_t turn_steps) {
  TurnComparison comparison;
  comparison.turn_steps = turn_steps;
  LogTimes times;
  size_t ended = 0;
  for (size_t start = 0; start < starts.size(); ++start) {
    const std::vector<Turn> turns = BusiestTurns(starts[start]);
    if (turns.size() < 2) continue;
    const size_t usual = UsualCalls(turns);
    comparison.calls_of_step = usual / turn_steps;
    AddTimes(start, turns, names.size(), turn_steps, usual, times);
    comparison.steady_share = std::min(comparison.steady_share, SteadyShareOf(turns));
    ended += turns.size() - 1 - (turns.front().number == 0 ? 1 : 0);
  }
  if (times.empty())
    return WithHint(MakeError(ErrorKind::kUnsupported, "no setting had a whole turn of {} steps", turn_steps),
                    fmt::format("the job must repeat its steps, at least 4 + {} x {} of them for a round",
                                names.size(), turn_steps));
  for (size_t setting = 0; setting < names.size(); ++setting)
    comparison.settings.push_back(SettingOf(times, setting, names[setting]));
  size_t counted = 0;
  for (const auto& [round, of_round] : times) {
    counted += of_round.size();
    comparison.rounds += of_round.size() == names.size() ? 1 : 0;
  }
  comparison.noise = NoiseOf(times, names.size());
  comparison.left_out = ended - std::min(ended, counted);
  return comparison;
}

std::string Describe(const TurnComparison& comparison) {
  std::string text =
      fmt::format("{} settings in turns of {} steps, {} calls a step: {} rounds, {} turns left out\n",
                  comparison.settings.size(), comparison.turn_steps, comparison.calls_of_step,
                  comparison.rounds, comparison.left_out);
  text += fmt::format("{:>10}  {:>6}  {:<16}  {}\n", "step ms", "ratio", "95 % interval", "setting");
  for (const SettingTimes& setting : comparison.settings) {
    if (&setting == &comparison.settings.front()) {
      text += fmt::format("{:10.2f}  {:>6}  {:<16}  {}\n", setting.step_ms, "", "", setting.name);
      continue;
    }
    const std::string interval =
        std::isfinite(setting.interval.high)
            ? fmt::format("{:.3f} to {:.3f}", setting.interval.low, setting.interval.high)
            : "not known";
    text += fmt::format("{:10.2f}  {:6.3f}  {:<16}  {}: {}\n", setting.step_ms, setting.ratio, interval,
                        setting.name, VerdictOf(setting));
  }
  if (!comparison.SeesSteps())
    return text + fmt::format(
                      "Nothing is sure: the steps are {:.0f} % of the time. The program issues them "
                      "without waiting, so the times of its host are not theirs.\n",
                      100 * comparison.steady_share);
  const double more = comparison.MoreSteps();
  text += fmt::format("A turn's noise is {:.1f} %. ", 100 * comparison.noise);
  if (more < 0) return text + "Fewer than six rounds say nothing sure: let the job run longer.\n";
  if (more == 0) return text + fmt::format("Differences of {:.1f} % are told apart.\n", 100 * kToldApart);
  return text +
         fmt::format("Telling {:.1f} % apart would take about {:.0f} steps more.\n", 100 * kToldApart, more);
}

Json ToJson(const TurnComparison& comparison) {
  Json settings = Json::array();
  for (const SettingTimes& setting : comparison.settings) {
    const bool known = std::isfinite(setting.interval.high);
    settings.push_back({{"name", setting.name},
                        {"turns", setting.turns},
                        {"step_ms", setting.step_ms},
                        {"ratio", setting.ratio},
                        {"low", known ? Json(setting.interval.low) : Json()},
                        {"high", known ? Json(setting.interval.high) : Json()}});
  }
  return {{"schema", 1},
          {"turn_steps", comparison.turn_steps},
          {"calls_of_step", comparison.calls_of_step},
          {"rounds", comparison.rounds},
          {"left_out", comparison.left_out},
          {"noise", comparison.noise},
          {"steady_share", comparison.steady_share},
          {"more_steps", comparison.MoreSteps()},
          {"settings", settings}};
}

}  // namespace dynamiccl
