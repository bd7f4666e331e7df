// SPDX-License-Identifier: Apache-2.0
// `dynamiccl record`: a run in observe mode whose calls become one trace.
#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/collective/size_class.h"
#include "tools/command_table.h"
#include "tools/launch_options.h"
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
          {"lost", launch.lost},
          {"bytes", launch.bytes},
          {"coverage", RecordJson(launch.coverage)},
          {"warning", launch.warning},
          {"seconds", static_cast<double>(launch.outcome.wall_ns) * 1e-9}};
}

void Summarize(const RecordedLaunch& launch, const std::string& output) {
  spdlog::info("{}", Describe(launch.outcome));
  const std::string coverage = Describe(launch.coverage);
  if (!coverage.empty()) spdlog::info("{}", coverage);
  spdlog::info("{} records of {} processes, {} lost, {} in {}", launch.records, launch.processes, launch.lost,
               FormatBytes(launch.bytes), output);
  if (!launch.warning.empty()) spdlog::warn("{}", launch.warning);
  spdlog::info("next: dynamiccl report {} -o report.html", output);
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
  // With a policy or rules the choices are ours, and the trace says so; without them nothing is changed.
  const bool decides = !options.runtime.policy.empty() || !options.runtime.rules.empty();
  if (options.runtime.mode.empty() && !decides) options.runtime.mode = "observe";
  options.runtime.trace = PartPattern(output);
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, line.program()));
  if (!options.quiet) spdlog::info("recording to {}", std::filesystem::absolute(output).string());
  DYNAMICCL_TRY(const RecordedLaunch launch, LaunchRecorded(plan, output));
  if (!options.quiet) Summarize(launch, output);
  if (!json.empty()) DYNAMICCL_CHECK_OK(WriteJsonFile(json, RecordJson(launch, output)));
  return ExitCodeOf(launch.outcome);
}

}  // namespace dynamiccl
