// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab capped`: the largest model that each stage trains under a cap of memory a rank.
#include <spdlog/spdlog.h>

#include "studies/commands/trainer_study.h"
#include "studies/lab_commands.h"
#include "studies/zero/capped.h"

namespace dynamiccl {
namespace {

struct CappedCommandOptions {
  TrainerStudyOptions study;
  CappedSettings capped{.memory_cap = "32M"};
  std::string learning_rate = "3e-3";
};

void RegisterCappedOptions(CommandLine& line, CappedCommandOptions& options) {
  CLI::App& app = line.app();
  RegisterTrainerStudy(app, options.study);
  app.add_option("--memory", options.capped.memory_cap,
                 "What the tensors of a rank may take, 32M for example")
      ->capture_default_str();
  app.add_option("--steps", options.capped.steps, "Steps of the training whose bits per byte are told")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  app.add_option("--learning-rate", options.learning_rate, "Of that training")->capture_default_str();
}

}  // namespace

Result<int> CappedCommand(CommandLine& line) {
  CappedCommandOptions options;
  RegisterCappedOptions(line, options);
  if (const auto exit_code = line.Parse()) return *exit_code;
  CappedSettings& settings = options.capped;
  settings.sequence = options.study.sequence;
  DYNAMICCL_TRY(settings.options, CommonTrainerOptions(options.study));
  settings.options.insert(settings.options.end(), {"--learning-rate", options.learning_rate});
  DYNAMICCL_TRY(TrainerRuns runs, OpenTrainerRuns(options.study, line));
  DYNAMICCL_TRY(const auto stages,
                FindLargestModels(runs, settings, [](const std::string& text) { spdlog::info("{}", text); }));
  const std::string header = fmt::format(
      "{} ranks, {} of memory each, {} sequences of {}, {}; held-out text after {} steps\n", runs.ranks(),
      settings.memory_cap, options.study.batch, settings.sequence, options.study.dtype, settings.steps);
  return PrintStudy(options.study, line, header + CappedTable(stages, settings),
                    CappedJson(stages, settings));
}

}  // namespace dynamiccl
