// SPDX-License-Identifier: Apache-2.0
#include "tools/pilot/pilot_session.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "src/collective/legal_configs.h"
#include "src/decision/rule_turns.h"
#include "tools/ab/rule_settings.h"
#include "tools/launch/machine_description.h"
#include "tools/launch/output_folder.h"
#include "tools/launch/shell_quote.h"
#include "tools/launch/signal_scope.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

// Rounds (one turn of each setting) that one start of the job should have. It is one more than an interval
// needs, because a turn with an unusual number of calls is left out.
constexpr size_t kRoundsWanted = kFewestRounds + 1;
// Steps for which a setting is in effect before the next one follows. The search uses as few as possible, so
// that many configs take turns in one start of the job.
constexpr uint32_t kSearchTurn = 2, kDecidingTurn = 3;
// The search for faster configs takes at most this share of the budget.
constexpr double kSearchShare = 0.6;
// A config that is less than 0.5 % faster in the search is not worth a comparison.
constexpr double kWorthComparing = 0.995;
// Numbers of channels that are tried, the extremes first; 0 stands for NCCL's own.
constexpr int kChannels[] = {1, 0, 32, 2, 4, 8, 16};
// The algorithms that every machine can run. NCCL has further ones, which need special hardware; it chooses
// them by itself where the hardware has them.
constexpr Algorithm kAlgorithms[] = {Algorithm::kRing, Algorithm::kTree, Algorithm::kPat};

// Returns the collectives that a setting can change. A collective with less than a hundredth of the calls is
// left out, because it belongs to the start of the job and not to its steps.
std::vector<Collective> CollectivesOf(const SectionCalls& calls) {
  std::array<size_t, kTunableCollectives> counts{};
  for (const TraceCall& call : calls.calls) {
    const CollectiveCall& issued = call.issued.call;
    const auto collective = static_cast<size_t>(issued.collective);
    if (collective < counts.size() && issued.bytes >= kLeastBytesOfSetting) ++counts[collective];
  }
  std::vector<Collective> collectives;
  for (size_t i = 0; i < counts.size(); ++i)
    if (100 * counts[i] > calls.calls.size()) collectives.push_back(static_cast<Collective>(i));
  return collectives;
}

// Adds a setting such as "allgather=ring/simple/1" for each algorithm and protocol that the collective has,
// with this number of channels.
void AddConfigs(Collective collective, int channels, std::vector<std::string>& settings) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (int i = 0; i < kProtocols; ++i) {
      const auto protocol = static_cast<Protocol>(i);
      if (!NcclConfigs(collective).test(ConfigIndex(algorithm, protocol))) continue;
      std::string setting = fmt::format("{}={}/{}", Name(collective), Name(algorithm), Name(protocol));
      if (channels > 0) setting += fmt::format("/{}", channels);
      settings.push_back(std::move(setting));
    }
  }
}

// "allgather" of "allgather=ring/simple/1".
std::string CollectiveIn(const std::string& setting) {
  return setting.substr(0, setting.find('='));
}

}  // namespace

double PilotSession::Elapsed() const {
  return static_cast<double>(MonotonicNanoseconds() - begun_ns_) * 1e-9;
}

bool PilotSession::OneMoreFits(double share) const {
  return Elapsed() + longest_start_s_ <= given_.budget_s * share;
}

Result<PilotResult> PilotSession::Run() {
  // A signal that comes between two starts of the job ends the pilot at the next start, which can say what is
  // kept.
  const SignalScope signals;
  BeginLog(File("job.log"));
  DYNAMICCL_CHECK_OK(Observe());
  if (!result_.why_not.empty()) return std::move(result_);
  const RuntimeOptions& given = given_.launch.runtime;
  if (!given.policy.empty()) {
    DYNAMICCL_CHECK_OK(Decide({"nccl", "NCCL's choice"}, {"default", "policy " + given.policy}));
  } else if (!given.rules.empty()) {
    DYNAMICCL_CHECK_OK(Decide({"default", "NCCL's choice"}, {given.rules, "rules " + given.rules}));
  } else {
    DYNAMICCL_TRY(const std::optional<Side> ours, FindFaster());
    if (ours) DYNAMICCL_CHECK_OK(Decide({"default", "NCCL's choice"}, *ours));
    if (ours && result_.Verdict() == PilotVerdict::kFaster) {
      result_.rules = File("best.toml");
      DYNAMICCL_TRY(const std::string rules, RulesOfSetting(ours->setting));
      DYNAMICCL_CHECK_OK(WriteTextFile(result_.rules, rules));
    }
  }
  return std::move(result_);
}

Error PilotSession::Failed(const std::string& what, const LaunchOutcome& outcome,
                           const std::vector<std::string>& kept) {
  interrupted_by_ = outcome.interrupted_by;
  Error error{ErrorKind::kPeerFailed, fmt::format("{}: {}", what, Describe(outcome)),
              OutputHint(File("job.log"))};
  if (interrupted_by_ == 0) return error;
  error.message = "interrupted: " + error.message;
  const std::string calls =
      kept.empty() ? "" : fmt::format("the job's calls are in {}, ", fmt::join(kept, " and "));
  error.hint = fmt::format("a new pilot begins again; {}{}", calls, error.hint);
  return error;
}

Status PilotSession::Observe() {
  spdlog::info("1 of 3: the job as it is, recorded");
  LaunchOptions launch = given_.launch;
  launch.runtime.policy.clear();
  launch.runtime.rules.clear();
  launch.runtime.mode = "observe";
  result_.trace = File("observed.ctrace");
  launch.runtime.trace = PartPattern(result_.trace);
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, line_.program()));
  plan.output_path = File("job.log");
  DYNAMICCL_TRY(result_.observed, LaunchRecorded(plan, result_.trace));
  const LaunchOutcome& outcome = result_.observed.outcome;
  std::vector<std::string> kept;
  if (result_.observed.processes > 0) kept.push_back(result_.trace);
  if (!outcome.ok()) return tl::unexpected(Failed("the job as it is", outcome, kept));
  longest_start_s_ = static_cast<double>(outcome.wall_ns) * 1e-9;
  result_.machine = MachineDescription();
  result_.command = ShellQuote(line_.program());
  spdlog::info("{}", Describe(result_.observed.coverage));
  if (result_.observed.missing.any()) spdlog::warn("{}", Describe(result_.observed.missing));
  DYNAMICCL_TRY(const Trace trace, ReadTrace(result_.trace));
  if (!trace.sections.empty()) observed_ = CallsOf(trace.sections.front());
  if (!observed_.calls.empty())
    result_.calls_ns = observed_.calls.back().issued.issued_ns - observed_.calls.front().issued.issued_ns;
  if (TurnsOfStart(observed_, kSearchTurn) < 2)
    result_.why_not = fmt::format(
        "the {} calls of a start show no training step that repeats, or too few for two settings to take "
        "turns",
        observed_.calls.size());
  return {};
}

std::vector<std::vector<std::string>> PilotSession::Groups() const {
  std::vector<std::string> settings;
  for (const int channels : kChannels)
    for (const Collective collective : CollectivesOf(observed_)) AddConfigs(collective, channels, settings);
  const size_t sides = TurnsOfStart(observed_, kSearchTurn) / kRoundsWanted;
  const size_t of_start = sides < 2 ? 1 : std::min(sides, kMaxRuleSets) - 1;
  std::vector<std::vector<std::string>> groups;
  for (size_t i = 0; i < settings.size(); i += of_start) {
    groups.push_back({"default"});
    for (size_t k = i; k < std::min(i + of_start, settings.size()); ++k) groups.back().push_back(settings[k]);
  }
  return groups;
}

Result<std::optional<SectionCalls>> PilotSession::Start(const std::vector<std::string>& settings,
                                                        uint32_t turn_steps) {
  const TurnsPlan plan{.settings = settings,
                       .turn_steps = turn_steps,
                       .trace = File("turns.ctrace"),
                       .output_path = File("job.log")};
  LaunchOptions launch = given_.launch;
  launch.runtime.rules.clear();
  DYNAMICCL_TRY(TurnsStart start, StartInTurns(launch, line_.program(), plan));
  const LaunchOutcome& outcome = start.recorded.outcome;
  longest_start_s_ = std::max(longest_start_s_, static_cast<double>(outcome.wall_ns) * 1e-9);
  std::vector<std::string> kept{result_.trace};
  if (start.recorded.processes > 0) kept.push_back(plan.trace);
  if (!outcome.ok()) return tl::unexpected(Failed("the job with settings in turns", outcome, kept));
  if (start.calls.calls.empty()) return std::nullopt;
  return std::move(start.calls);
}

Result<std::optional<PilotSession::Side>> PilotSession::FindFaster() {
  const std::vector<std::vector<std::string>> groups = Groups();
  spdlog::info("2 of 3: configs of NCCL in turns within the job, {} starts", groups.size());
  std::map<std::string, SettingTimes> best;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0 && !OneMoreFits(kSearchShare)) {
      result_.notes.push_back(fmt::format("{} of {} starts of the search did not fit the budget",
                                          groups.size() - i, groups.size()));
      break;
    }
    DYNAMICCL_TRY(const std::optional<SectionCalls> calls, Start(groups[i], kSearchTurn));
    if (!calls) continue;
    const Result<TurnComparison> compared = CompareTurns({*calls}, groups[i], kSearchTurn);
    if (!compared) {
      result_.notes.push_back(compared.error().message);
      continue;
    }
    result_.searched.push_back(*compared);
    for (const SettingTimes& setting : compared->settings) {
      if (setting.ratio >= kWorthComparing || setting.name == "default") continue;
      const auto [found, is_new] = best.try_emplace(CollectiveIn(setting.name), setting);
      if (!is_new && setting.ratio < found->second.ratio) found->second = setting;
    }
  }
  if (best.empty()) return std::nullopt;
  Side ours;
  for (const auto& [collective, setting] : best)
    ours.setting += (ours.setting.empty() ? "" : ",") + setting.name;
  ours.name = ours.setting;
  return ours;
}

Status PilotSession::Decide(const Side& first, const Side& ours) {
  result_.ours = ours.name;
  const std::vector<std::string> settings{first.setting, ours.setting}, names{first.name, ours.name};
  const bool has_time = TurnsOfStart(observed_, kDecidingTurn) >= 2 * kRoundsWanted;
  const uint32_t turn = has_time ? kDecidingTurn : kSearchTurn;
  std::vector<SectionCalls> starts;
  for (int i = 0; i < given_.starts; ++i) {
    if (i > 0 && !OneMoreFits(1)) break;
    spdlog::info("3 of 3: {} and {} in turns: start {} of {}", first.name, ours.name, i + 1, given_.starts);
    DYNAMICCL_TRY(std::optional<SectionCalls> start, Start(settings, turn));
    if (start) starts.push_back(std::move(*start));
  }
  result_.starts = starts.size();
  Result<TurnComparison> compared = CompareTurns(starts, names, turn);
  if (!compared)
    result_.why_not = compared.error().message;
  else if (!compared->SeesSteps())
    result_.why_not =
        "the program issues its steps without waiting for them, so its host's times are not theirs";
  else
    result_.decided = std::move(*compared);
  return {};
}

}  // namespace dynamiccl
