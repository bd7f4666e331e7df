// SPDX-License-Identifier: Apache-2.0
// `dynamiccl run`: runs a program under DynamICCL. The program's output is untouched; at the end a few lines
// go to standard error:
//
//   dynamiccl: 2 ranks ended well in 4.22 s
//   dynamiccl: policy starter.dcpolicy, over hostccl
#include "tools/command_table.h"
#include "tools/launch_options.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

Json RunJson(const RankOutcome& rank) {
  return {{"rank", rank.rank},
          {"exit_code", rank.exit_code ? Json(*rank.exit_code) : Json()},
          {"signal", rank.signal ? Json(*rank.signal) : Json()},
          {"ended_by_launcher", rank.ended_by_us}};
}

Json RunJson(const LaunchOutcome& outcome, const RuntimeOptions& runtime) {
  Json ranks = Json::array();
  for (const RankOutcome& rank : outcome.ranks) ranks.push_back(RunJson(rank));
  return {{"schema", 1},
          {"ok", outcome.ok()},
          {"seconds", static_cast<double>(outcome.wall_ns) * 1e-9},
          {"first_failed_rank", outcome.first_failed ? Json(outcome.first_failed->rank) : Json()},
          {"ranks", ranks},
          {"mode", runtime.mode},
          {"policy", runtime.policy},
          {"hostccl", runtime.hostccl}};
}

}  // namespace

Result<int> RunCommand(CommandLine& line) {
  LaunchOptions options;
  std::string json;
  RegisterLaunchOptions(line.app(), options);
  line.app().add_option("--trace", options.runtime.trace, "Record a trace here; %r stands for the rank");
  line.app().add_option("--json", json, "Write the summary as JSON to this file");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, line.program()));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (!options.quiet) PrintSummary(outcome, options.runtime);
  if (!json.empty()) DYNAMICCL_CHECK_OK(WriteJsonFile(json, RunJson(outcome, options.runtime)));
  return ExitCodeOf(outcome);
}

}  // namespace dynamiccl
