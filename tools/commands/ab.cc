// SPDX-License-Identifier: Apache-2.0
// `dynamiccl ab`: compares settings by what they do to the training steps of one job, in which they take
// turns (docs/ab.md). The job's output is untouched; the result follows it:
//
//   2 settings in turns of 3 steps, 16 calls a step: 38 rounds, 0 turns left out
//      step ms   ratio  95 % interval     setting
//        21.63                            default
//        14.71   0.680  0.672 to 0.689    ring/simple/1: faster
//   A turn's noise is 2.4 %. Telling 0.5 % apart would take about 300 steps more.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/base/settings.h"
#include "src/decision/override_rules.h"
#include "src/decision/rule_turns.h"
#include "tools/ab/rule_settings.h"
#include "tools/ab/turn_comparison.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/temporary_folder.h"
#include "tools/launch_options.h"
#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

struct AbOptions {
  LaunchOptions launch;
  std::vector<std::string> settings;
  uint32_t turn_steps = 3;
  std::string trace;
  std::string json;
};

// The path of the rules file that a setting stands for; empty where the setting leaves the choice to NCCL or
// to the policy.
Result<std::string> FileOf(const std::string& setting, size_t number, const TemporaryFolder& folder) {
  if (setting == "default") return std::string();
  std::string path = std::filesystem::absolute(setting).string();
  if (!std::filesystem::exists(path)) {
    path = folder.File(fmt::format("{}.toml", number));
    DYNAMICCL_TRY(const std::string rules, RulesOfSetting(setting));
    DYNAMICCL_CHECK_OK(WriteTextFile(path, rules));
  }
  if (path.find(':') != std::string::npos)
    return MakeError(ErrorKind::kInvalidArgument, "{}: a path with a colon cannot be used here", path);
  DYNAMICCL_TRY(const OverrideRules rules, OverrideRules::ReadFile(path));
  if (rules.any_about_communicators())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} has rules for communicators", path),
                    "they hold from a communicator's init, so they cannot take turns: compare two runs");
  return path;
}

Result<std::string> PathsOf(const std::vector<std::string>& settings, const TemporaryFolder& folder) {
  std::string paths;
  for (size_t i = 0; i < settings.size(); ++i) {
    DYNAMICCL_TRY(const std::string path, FileOf(settings[i], i, folder));
    paths += (i == 0 ? "" : ":") + path;
  }
  return paths;
}

// Runs the job with the settings taking turns, and reads what its first process recorded.
Result<TurnComparison> Compare(const CommandLine& line, AbOptions& given) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("ab"));
  DYNAMICCL_TRY(const std::string paths, PathsOf(given.settings, folder));
  const std::string trace = given.trace.empty() ? folder.File("ab.ctrace") : given.trace;
  LaunchOptions& launch = given.launch;
  launch.runtime.mode = "frozen";
  launch.runtime.trace = PartPattern(trace);
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, line.program()));
  plan.environment["DYNAMICCL_RULES_IN_TURN"] = paths;
  plan.environment["DYNAMICCL_TURN_STEPS"] = std::to_string(given.turn_steps);
  DYNAMICCL_TRY(const RecordedLaunch recorded, LaunchRecorded(plan, trace));
  if (!recorded.outcome.ok())
    return MakeError(ErrorKind::kPeerFailed, "the job failed: {}", Describe(recorded.outcome));
  if (!launch.quiet) spdlog::info("{}", Describe(recorded.outcome));
  if (recorded.lost > 0)
    spdlog::warn(
        "{} records were overwritten, so only the last part of the job counts: set "
        "DYNAMICCL_TRACE_RECORDS higher",
        recorded.lost);
  DYNAMICCL_TRY(const Trace read, ReadTrace(trace));
  if (read.sections.empty()) return MakeError(ErrorKind::kUnsupported, "the job made no NCCL calls");
  return CompareTurns(CallsOf(read.sections.front()), given.settings, given.turn_steps);
}

}  // namespace

Result<int> AbCommand(CommandLine& line) {
  AbOptions given;
  RegisterLaunchOptions(line.app(), given.launch);
  line.app()
      .add_option("setting", given.settings,
                  "default, a file of override rules, a config (ring/simple/1), or "
                  "allgather=ring/simple/1,allreduce=tree/ll; the others are compared with the first")
      ->required()
      ->expected(2, static_cast<int>(kMaxRuleSets));
  line.app()
      .add_option("--turn-steps", given.turn_steps, "Steps of a turn, of which the first does not count")
      ->capture_default_str()
      ->check(CLI::Range(kLeastTurnSteps, kMaxTurnSteps));
  line.app().add_option("--trace", given.trace, "Keep the trace of the job here (.ctrace)");
  line.app().add_option("--json", given.json, "Write the result as JSON to this file");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (!given.launch.runtime.rules.empty() || !given.launch.runtime.mode.empty())
    return MakeError(ErrorKind::kInvalidArgument, "--rules and --mode cannot be given: settings take turns");
  if (!TextSetting(Setting::kRules).empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "DYNAMICCL_RULES is set, and settings take turns"),
                    "unset it, and name its file as one of the settings");
  DYNAMICCL_TRY(const TurnComparison comparison, Compare(line, given));
  if (!given.json.empty()) DYNAMICCL_CHECK_OK(WriteJsonFile(given.json, ToJson(comparison)));
  fmt::print("{}", Describe(comparison));
  return kExitOk;
}

}  // namespace dynamiccl
