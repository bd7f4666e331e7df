// SPDX-License-Identifier: Apache-2.0
// The common parts of `dynamiccl-lab tradeoffs` and `dynamiccl-lab capped`.
#include "studies/commands/trainer_study.h"

#include <cstdio>

#include "src/base/file_kind.h"
#include "tools/exit_code.h"
#include "tools/sibling_program.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

void RegisterTrainerStudy(CLI::App& app, TrainerStudyOptions& options) {
  options.launch.n_ranks = 2;
  options.launch.runtime.preload = false;
  app.add_option("-n,--ranks", options.launch.n_ranks, "Ranks on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--data", options.data, "Text file or folder; default: the cached Shakespeare");
  app.add_option("--batch", options.batch, "Sequences of a step, over all ranks")->capture_default_str();
  app.add_option("--sequence", options.sequence, "Bytes that the model sees at once")->capture_default_str();
  app.add_option("--dtype", options.dtype, "fp32, bf16 or fp16")->capture_default_str();
  app.add_option("--json", options.json, "Write the table as JSON to this file");
  RegisterNcclOptions(app, options.launch);
}

Result<TrainerRuns> OpenTrainerRuns(TrainerStudyOptions& options, CommandLine& line) {
  DYNAMICCL_CHECK_OK(CheckOutputs({options.json}));
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.launch.home));
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(options.launch, std::move(command)));
  return TrainerRuns::Open(std::move(plan));
}

Result<std::vector<std::string>> CommonTrainerOptions(const TrainerStudyOptions& options) {
  DYNAMICCL_TRY(const std::string text, FindTrainingText(options.data));
  return std::vector<std::string>{"--data",  text,         "--batch", std::to_string(options.batch),
                                  "--dtype", options.dtype};
}

Result<int> PrintStudy(const TrainerStudyOptions& options, const CommandLine& line, const std::string& table,
                       Json rows) {
  std::fputs(table.c_str(), stdout);
  if (!options.json.empty()) {
    DYNAMICCL_CHECK_OK(
        WriteJsonFile(options.json, {{"schema", 1}, {"command", line.Quoted()}, {"rows", std::move(rows)}}));
  }
  return kExitOk;
}

}  // namespace dynamiccl
