// SPDX-License-Identifier: Apache-2.0
// `dynamiccl zero capped`: the largest model that each stage trains under a cap of memory a rank.
#include <spdlog/spdlog.h>

#include "tools/commands/zero_studies.h"
#include "tools/zero/capped.h"

namespace dynamiccl {
namespace {

struct Words {
  ZeroStudyOptions study;
  CappedSettings capped{.memory_cap = "32M"};
  std::string learning_rate = "3e-3";
};

void Register(CommandLine& line, Words& words) {
  CLI::App* const app =
      AddZeroStudy(line, "capped", "The largest model of each stage in so much memory", words.study);
  app->add_option("--memory", words.capped.memory_cap, "What the tensors of a rank may take, 32M for example")
      ->capture_default_str();
  app->add_option("--steps", words.capped.steps, "Steps of the training whose bits per byte are told")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  app->add_option("--learning-rate", words.learning_rate, "Of that training")->capture_default_str();
}

}  // namespace

Result<int> ZeroCapped(CommandLine& line) {
  Words words;
  Register(line, words);
  if (const auto exit_code = line.Parse()) return *exit_code;
  CappedSettings& settings = words.capped;
  settings.sequence = words.study.sequence;
  DYNAMICCL_TRY(settings.options, CommonTrainerOptions(words.study));
  settings.options.insert(settings.options.end(), {"--learning-rate", words.learning_rate});
  DYNAMICCL_TRY(TrainerRuns runs, OpenTrainerRuns(words.study, line));
  DYNAMICCL_TRY(const auto stages,
                FindLargestModels(runs, settings, [](const std::string& text) { spdlog::info("{}", text); }));
  const std::string header = fmt::format(
      "{} ranks, {} of memory each, {} sequences of {}, {}; held-out text after {} steps\n", runs.ranks(),
      settings.memory_cap, words.study.batch, settings.sequence, words.study.dtype, settings.steps);
  return PrintStudy(words.study, line, header + CappedTable(stages, settings), CappedJson(stages, settings));
}

}  // namespace dynamiccl
