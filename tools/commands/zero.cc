// SPDX-License-Identifier: Apache-2.0
// `dynamiccl zero` starts the ZeRO trainer (dynamiccl-zero) as n ranks. If another launcher started this
// process as one of its ranks, the trainer replaces this process. The trainer also replaces it for `zero
// checkpoint`, which has no ranks. `zero estimate` is computed here and needs no trainer.
#include <fmt/format.h>

#include <cstdlib>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/launch_options.h"
#include "tools/sibling_program.h"
#include "zero_workloads/estimate/estimate_command.h"

namespace dynamiccl {

namespace {

constexpr int kRanksByDefault = 2;

// True if torchrun or a launch of DynamICCL (`dynamiccl ab`, `pilot`, `run -n`) started this process as a
// rank.
bool IsRank() {
  return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr;
}

// Runs `zero estimate`. No ranks are started: the estimate is about a job that need not exist.
Result<int> Estimate(CommandLine& line) {
  zero::EstimateCommand command;
  command.Register(*line.app().add_subcommand("estimate", "What each rank's memory must hold, by stage"));
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const std::string text, command.Run());
  fmt::print("{}", text);
  return kExitOk;
}

// Runs `zero checkpoint`: the trainer replaces this process and gets all words of the command line.
Result<int> RunWithoutRanks(CommandLine& line) {
  DYNAMICCL_TRY(const Installation installation, FindInstallation());
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  command.insert(command.begin() + 1, line.arguments().begin(), line.arguments().end());
  DYNAMICCL_CHECK_OK(BecomeSibling(command));
  return kExitEnvironment;
}

// Refuses words for the trainer that do not begin with the action `train`, before ranks are started for them.
// They follow the launch's options, or `--`.
Status CheckAction(CommandLine& line) {
  std::vector<std::string> words = line.app().remaining();
  words.insert(words.end(), line.program().begin(), line.program().end());
  const std::string word = words.empty() ? "" : words.front();
  if (word == "train") return {};
  std::string what = word.empty() ? "no action" : fmt::format("no action '{}'", word);
  if (word.starts_with("-")) what = fmt::format("no action before '{}'", word);
  if (word == "estimate" || word == "checkpoint")
    what = fmt::format("'{}' must be the first word, because no ranks are started for it", word);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl zero: {}", what),
                  "there are: train, estimate, checkpoint; `dynamiccl zero --help` says more");
}

}  // namespace

Result<int> ZeroCommand(CommandLine& line) {
  const std::string word = line.arguments().empty() ? "" : line.arguments().front();
  if (word == "estimate") return Estimate(line);
  if (word == "checkpoint") return RunWithoutRanks(line);
  LaunchOptions options;
  RegisterLaunchOptions(line.app(), options);
  line.app().add_option("--trace", options.runtime.trace, "Record a trace here; %r stands for the rank");
  line.app().allow_extras();
  line.app().get_option("--ranks")->description(
      "Ranks to start here (default: 2; where torchrun or another command's -n started this as a rank, that "
      "one)");
  SetSiblingHelp(line, "train", "Everything else is handed to dynamiccl-zero.", [&options] {
    const auto installation = FindInstallation(options.home);
    return installation ? installation->zero : std::string();
  });
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckAction(line));
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.home));
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  if (options.n_ranks == 0) {
    if (IsRank()) {
      DYNAMICCL_CHECK_OK(BecomeSibling(command));
      return kExitEnvironment;
    }
    options.n_ranks = kRanksByDefault;
  }
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, std::move(command)));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (!options.quiet) PrintSummary(outcome, options.runtime);
  return ExitCodeOf(outcome);
}

}  // namespace dynamiccl
