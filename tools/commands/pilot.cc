// SPDX-License-Identifier: Apache-2.0
// `dynamiccl pilot`: what DynamICCL would do for a user's own job, in one file (docs/pilot.md). What it says
// while it works goes to standard error, the result to standard output:
//
//   dynamiccl: 1 of 3: the job as it is, recorded
//   dynamiccl: 2 of 3: configs of NCCL in turns within the job, 2 starts
//   tunable 100.0 % of the bytes (not all calls were timed)
//   None of 30 configs was faster in the job: leave NCCL's choice.
#include <fmt/format.h>

#include "src/base/file_kind.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/output_folder.h"
#include "tools/pilot/pilot_session.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

Status Write(const PilotResult& result, const std::string& folder) {
  DYNAMICCL_TRY(Trace trace, ReadTrace(result.trace));
  DYNAMICCL_CHECK_OK(WriteJsonFile(folder + "/pilot.json", ToJson(result)));
  return WriteTextFile(folder + "/pilot.html", RenderPilot(result, {result.trace, std::move(trace)}));
}

Status CheckOptions(const PilotOptions& given) {
  const RuntimeOptions& runtime = given.launch.runtime;
  DYNAMICCL_CHECK_OK(CheckNothingInherited(runtime));
  if (!runtime.policy.empty() && !runtime.rules.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--policy and --rules are both given"),
                    "one of them is compared with NCCL's choice: start a pilot for each");
  if (runtime.mode.empty() || runtime.mode == "frozen") return CheckChoices(runtime);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--mode {} cannot be compared here", runtime.mode),
                  "a policy or rules take turns with NCCL's choice in mode frozen; mode adaptive compares by "
                  "itself: dynamiccl run --mode adaptive");
}

}  // namespace

Result<int> PilotCommand(CommandLine& line) {
  PilotOptions given;
  RegisterLaunchOptions(line.app(), given.launch);
  line.app().add_option("-o,--output", given.folder, "Folder for what is found")->capture_default_str();
  line.app()
      .add_option("--budget", given.budget_s, "Time for all of it (600s, 15m)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}}))
      ->check(AboveZero())
      ->default_str("15m");
  line.app()
      .add_option(
          "--starts", given.starts,
          "Starts of the job that compare NCCL's choice with ours; fewer, but one, when time is short")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  line.app().add_flag("--json", given.json, "Print the result as JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckProgramGiven(line.program()));
  DYNAMICCL_CHECK_OK(CheckOptions(given));
  DYNAMICCL_TRY(const OwnFile lock, ClaimOutputFolder(given.folder));
  for (const char* const file :
       {"pilot.json", "pilot.html", "best.toml", "observed.ctrace", "turns.ctrace", "job.log"})
    DYNAMICCL_CHECK_OK(CheckOutputs({given.folder + "/" + file}));
  PilotSession session(line, given);
  const Result<PilotResult> found = session.Run();
  if (!found && session.interrupted_by() != 0)
    return ExitInterrupted(found.error(), session.interrupted_by());
  DYNAMICCL_TRY(const PilotResult result, found);
  DYNAMICCL_CHECK_OK(Write(result, given.folder));
  if (given.json)
    PrintJson(ToJson(result));
  else
    fmt::print("{}{}/pilot.html has all of it\n", Describe(result), given.folder);
  return result.Verdict() == PilotVerdict::kSlower ? kExitResultSaysNo : kExitOk;
}

}  // namespace dynamiccl
