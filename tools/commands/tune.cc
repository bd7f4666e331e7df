// SPDX-License-Identifier: Apache-2.0
// `dynamiccl tune`: finds settings of a job's framework and of NCCL that make its steps shorter, by starting
// the job again and again (docs/tune.md). What it says while it works goes to standard error, the answer to
// standard output.
#include <fmt/format.h>

#include "src/base/file_kind.h"
#include "src/base/settings.h"
#include "tools/ab/job_in_turns.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/output_folder.h"
#include "tools/tune/tune_result.h"

namespace dynamiccl {
namespace {

void RegisterTuneOptions(CLI::App& app, TuneOptions& given) {
  RegisterLaunchOptions(app, given.launch);
  const std::map<std::string, double> units{{"s", 1}, {"m", 60}};
  app.add_option("-o,--output", given.folder, "Folder for what is found")->capture_default_str();
  app.add_option("--budget", given.budget_s, "Time for all of it (600s, 10m)")
      ->transform(CLI::AsNumberWithUnit(units))
      ->check(AboveZero())
      ->default_str("10m");
  app.add_option("--start-limit", given.start_limit_s,
                 "Longest time of one start of the job, which is then ended")
      ->transform(CLI::AsNumberWithUnit(units))
      ->check(AboveZero())
      ->default_str("60s");
  app.add_option("--try", given.only,
                 "Try these alone: bucket_cap_mb=100, ring/simple/1, or both with a comma between them")
      ->expected(1, 64);
}

Status CheckOptions(const TuneOptions& given) {
  DYNAMICCL_CHECK_OK(CheckNothingInherited(given.launch.runtime));
  if (const char* const name = Row(Setting::kFrameworkSettings).name;
      !TextSetting(Setting::kFrameworkSettings).empty())
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} is set, and a tune finds settings itself", name),
        fmt::format("unset it: env -u {} dynamiccl tune ...", name));
  for (const std::string& candidate : given.only) DYNAMICCL_CHECK_OK(CandidateNamed(candidate));
  if (given.launch.runtime.rules.empty() && given.launch.runtime.mode.empty()) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--rules and --mode cannot be given"),
                  "a tune finds rules itself; compare rules of your own by `dynamiccl ab`");
}

}  // namespace

Result<int> TuneCommand(CommandLine& line) {
  TuneOptions given;
  bool json = false;
  RegisterTuneOptions(line.app(), given);
  line.app().add_flag("--json", json, "Print the answer as JSON");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckProgramGiven(line.program()));
  DYNAMICCL_CHECK_OK(CheckOptions(given));
  DYNAMICCL_TRY(const OwnFile lock, ClaimOutputFolder(given.folder));
  DYNAMICCL_CHECK_OK(CheckOutputs({given.folder + "/tune.json"}));
  TuneSession session(line, given);
  const Result<TuneResult> found = session.Run();
  if (!found && session.interrupted_by() != 0)
    return ExitInterrupted(found.error(), session.interrupted_by());
  DYNAMICCL_TRY(const TuneResult result, found);
  // The answer is printed before any file is written, and the journal is removed after that. So the answer is
  // not lost if a file cannot be written.
  if (!json) fmt::print("{}", Describe(result, given.folder));
  DYNAMICCL_CHECK_OK(WriteTuned(result, given.folder));
  DYNAMICCL_CHECK_OK(WriteJsonFile(given.folder + "/tune.json", ToJson(result)));
  if (result.needed_s == 0) session.RemoveJournal();
  if (json) PrintJson(ToJson(result));
  return kExitOk;
}

}  // namespace dynamiccl
