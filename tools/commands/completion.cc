// SPDX-License-Identifier: Apache-2.0
// `dynamiccl completion`: prints the script with which a shell completes this program. The words come from
// the commands themselves (tools/manual), so the script fits exactly this build and is written again after an
// upgrade:
//
//   eval "$(dynamiccl completion bash)"
#include <fmt/format.h>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/manual/described_command.h"

namespace dynamiccl {

Result<int> CompletionCommand(CommandLine& line) {
  std::string shell;
  line.app()
      .add_option("shell", shell, "Shell to write the script for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const std::string script, CompletionScript(shell, DescribeCommands()));
  fmt::print("{}", script);
  return kExitOk;
}

}  // namespace dynamiccl
