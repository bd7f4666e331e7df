// SPDX-License-Identifier: Apache-2.0
// `dynamiccl zero`: the ZeRO trainer (dynamiccl-zero) as n ranks under the launcher.
#include "tools/command_table.h"
#include "tools/launch_options.h"
#include "tools/sibling_program.h"

namespace dynamiccl {

Result<int> ZeroCommand(CommandLine& line) {
  LaunchOptions options;
  options.n_ranks = 2;
  RegisterLaunchOptions(line.app(), options);
  line.app().add_option("--trace", options.runtime.trace, "Record a trace here; %r stands for the rank");
  line.app().allow_extras();
  line.app().footer(
      "Everything else is handed to dynamiccl-zero: `dynamiccl zero train -n 1 -- --help` lists its "
      "options.");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(options.home));
  DYNAMICCL_TRY(std::vector<std::string> command, SiblingCommand(installation.zero, "dynamiccl-zero", line));
  DYNAMICCL_TRY(const LaunchPlan plan, PlanLaunch(options, std::move(command)));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (!options.quiet) PrintSummary(outcome, options.runtime);
  return ExitCodeOf(outcome);
}

}  // namespace dynamiccl
