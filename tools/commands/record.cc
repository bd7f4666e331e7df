// SPDX-License-Identifier: Apache-2.0
// `dynamiccl record`: runs a program in observe mode and makes one trace of its calls. The program's output
// is untouched; at the end standard error says how it ended and what was recorded:
//
//   dynamiccl: 2 ranks ended well in 3.51 s
//   dynamiccl: rank 0: of 60 calls the policy chose for 45, and 15 were left to NCCL
//   dynamiccl: tunable 100.0 % of the bytes (not all calls were timed)
//   dynamiccl: 1720 records of 2 processes, 0 lost, 115.62K in run.ctrace
//   dynamiccl: next: dynamiccl report run.ctrace -o report.html
//
// The second line appears only with a policy or rules.
#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/base/file_kind.h"
#include "src/base/settings.h"
#include "src/collective/size_class.h"
#include "tools/command_table.h"
#include "tools/launch_options.h"
#include "tools/record/decided_launch.h"
#include "tools/record/recorded_launch.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

Json RecordJson(const RecordedLaunch& launch, const std::string& output) {
  return {{"schema", 1},
          {"ok", launch.outcome.ok()},
          {"trace", output},
          {"processes", launch.processes},
          {"records", launch.records},
          {"lost", launch.missing.lost},
          {"replaced", launch.missing.replaced},
          {"bytes", launch.bytes},
          {"coverage", ToJson(launch.coverage)},
          {"warning", launch.warning},
          {"seconds", static_cast<double>(launch.outcome.wall_ns) * 1e-9}};
}

// Prints at most six lines about the recording on standard error. `decided` is the line about who decided.
void Summarize(const RecordedLaunch& launch, const std::string& decided, const std::string& output) {
  spdlog::info("{}", Describe(launch.outcome));
  if (launch.processes == 0 && !launch.warning.empty()) {
    spdlog::warn("{}", launch.warning);
    return;
  }
  if (launch.processes == 0) {
    spdlog::warn("no process called NCCL before the job ended, so {} was not written", output);
    return;
  }
  if (!decided.empty()) spdlog::info("{}", decided);
  const std::string coverage = Describe(launch.coverage);
  if (!coverage.empty()) spdlog::info("{}", coverage);
  spdlog::info("{} records of {} processes, {}, {} in {}", launch.records, launch.processes,
               Describe(launch.missing, ""), FormatBytes(launch.bytes), output);
  if (!launch.warning.empty()) spdlog::warn("{}", launch.warning);
  spdlog::info("next: dynamiccl report {} -o report.html", output);
}

// Refuses an output such as run.%r.ctrace: processes would write their parts under other names than those
// that are merged.
Status CheckIsOneName(const std::string& output) {
  const std::string path = std::filesystem::absolute(output).string();
  for (const char* const part : {"%h", "%p", "%r"}) {
    if (path.find(part) == std::string::npos) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{}: the path of a merged trace cannot have {} in it", path, part),
                    "name one file, which gets the calls of all ranks; DYNAMICCL_TRACE takes names with %r");
  }
  return {};
}

}  // namespace

Result<int> RecordCommand(CommandLine& line) {
  LaunchOptions options;
  std::string output;
  std::string json;
  RegisterLaunchOptions(line.app(), options);
  line.app().add_option("-o,--output", output, "Trace to write (.ctrace)")->required();
  line.app().add_option("--json", json, "Write the summary as JSON to this file");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({output, json}));
  DYNAMICCL_CHECK_OK(CheckIsOneName(output));
  // With a policy or rules DynamICCL chooses configs, and the trace shows it. Without them the mode is
  // observe, which changes nothing.
  const bool decides = !options.runtime.policy.empty() || !options.runtime.rules.empty();
  if (options.runtime.mode.empty() && !decides) options.runtime.mode = "observe";
  options.runtime.trace = PartPattern(output);
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, line.program()));
  if (!options.quiet) spdlog::info("recording to {}", std::filesystem::absolute(output).string());
  std::string decided;
  const auto launch_decided = [&](const LaunchPlan& job) -> Result<LaunchOutcome> {
    DYNAMICCL_TRY(const DecidedLaunch launch, LaunchDecided(job, TextSetting(Setting::kMetrics)));
    decided = Describe(launch);
    return launch.outcome;
  };
  DYNAMICCL_TRY(const RecordedLaunch launch, Decides(options.runtime)
                                                 ? LaunchRecorded(plan, output, launch_decided)
                                                 : LaunchRecorded(plan, output));
  if (!options.quiet) Summarize(launch, decided, output);
  if (!json.empty()) DYNAMICCL_CHECK_OK(WriteJsonFile(json, RecordJson(launch, output)));
  return ExitCodeOf(launch.outcome);
}

}  // namespace dynamiccl
