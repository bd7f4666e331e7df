// SPDX-License-Identifier: Apache-2.0
#include "tools/ab/job_in_turns.h"

#include <algorithm>
#include <filesystem>

#include "src/base/settings.h"
#include "src/decision/override_rules.h"
#include "src/decision/rule_turns.h"
#include "tools/ab/rule_settings.h"
#include "tools/launch/temporary_folder.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

// Returns the path of the rules file for a setting. Empty for a setting that leaves the choice to NCCL or to
// the policy.
Result<std::string> FileOf(const std::string& setting, size_t number, const std::string& folder) {
  if (setting == "default") return std::string();
  std::string path = std::filesystem::absolute(setting).string();
  if (!std::filesystem::exists(path)) {
    path = fmt::format("{}/setting-{}.toml", folder, number);
    DYNAMICCL_TRY(const std::string rules, RulesOfSetting(setting));
    DYNAMICCL_CHECK_OK(WriteTextFile(path, rules));
  }
  if (path.find(':') != std::string::npos)
    return MakeError(ErrorKind::kInvalidArgument, "{}: a path with a colon cannot be used here", path);
  DYNAMICCL_TRY(const OverrideRules rules, OverrideRules::ReadFile(path));
  if (rules.any_about_communicators())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} has rules for communicators", setting),
                    "they hold from a communicator's init and cannot take turns; `dynamiccl tune --try "
                    "min_ctas=16` compares runs");
  return path;
}

}  // namespace

Status CheckNothingInherited(const RuntimeOptions& given) {
  for (const Setting one : {Setting::kRules, Setting::kRulesInTurn, Setting::kDecisions, Setting::kPolicy}) {
    if (TextSetting(one).empty() || (one == Setting::kPolicy && !given.policy.empty())) continue;
    const char* const name = Row(one).name;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} is set, and settings take turns with NCCL's choice", name),
        one == Setting::kPolicy ? "unset it, or give the policy as --policy"
                                : fmt::format("unset it: env -u {} dynamiccl ...", name));
  }
  return {};
}

Result<EnvironmentChanges> TurnsEnvironment(const std::vector<std::string>& settings, uint32_t turn_steps,
                                            const std::string& folder) {
  std::string paths;
  for (size_t i = 0; i < settings.size(); ++i) {
    DYNAMICCL_TRY(const std::string path, FileOf(settings[i], i, folder));
    paths += (i == 0 ? "" : ":") + path;
  }
  return EnvironmentChanges{{"DYNAMICCL_RULES_IN_TURN", paths},
                            {"DYNAMICCL_TURN_STEPS", std::to_string(turn_steps)}};
}

Result<TurnsStart> StartInTurns(LaunchOptions launch, const std::vector<std::string>& program,
                                const TurnsPlan& turns) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("turns"));
  launch.runtime.mode = "frozen";
  launch.runtime.trace = PartPattern(turns.trace);
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, program));
  DYNAMICCL_TRY(EnvironmentChanges in_turn,
                TurnsEnvironment(turns.settings, turns.turn_steps, folder.path()));
  plan.environment.merge(in_turn);
  plan.output_path = turns.output_path;
  plan.time_limit = turns.time_limit;
  TurnsStart start;
  DYNAMICCL_TRY(start.recorded, LaunchRecorded(plan, turns.trace));
  Result<Trace> trace = ReadTraceFiles({turns.trace});
  if (trace) start.trace = std::move(*trace);
  if (!start.trace.sections.empty()) start.calls = CallsOf(start.trace.sections.front());
  return start;
}

// RuleTurns is the class that makes the turns inside a job. Its turns depend only on the calls, not on the
// settings. So it is run here over the recorded calls of each communicator, with an empty set of rules, to
// count the turns.
size_t TurnsOfStart(const SectionCalls& calls, uint32_t turn_steps) {
  const auto no_rules = std::make_shared<const OverrideRules>();
  uint32_t most = 0;
  for (const auto& [number, info] : calls.communicators) {
    RuleTurns turns({no_rules}, turn_steps);
    for (const TraceCall& call : calls.calls) {
      const CollectiveCall& issued = call.issued.call;
      if (call.communicator == number)
        turns.RulesAt({.collective = issued.collective, .bytes = issued.bytes}, issued.call_number);
    }
    most = std::max(most, turns.turn());
  }
  return most == 0 ? 0 : most - 1;
}

}  // namespace dynamiccl
