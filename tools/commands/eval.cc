// SPDX-License-Identifier: Apache-2.0
// `dynamiccl eval`: how good a policy is on traces and measurements. The work is done by dynamiccl-agents,
// which replaces this process.
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/sibling_program.h"

namespace dynamiccl {

Result<int> EvalCommand(CommandLine& line) {
  std::string home;
  line.app().add_option("--home", home, "Installation to use (default: the one of this program)");
  line.app().allow_extras();
  SetSiblingHelp(
      line, "eval",
      "Files that end in .dcpolicy, .ctrace, .ctracez and .measurements need no option before them.\n"
      "Everything else is handed to dynamiccl-agents; where a build has it, `dynamiccl eval "
      "--help` lists its options.",
      [&home] {
        const auto installation = FindInstallation(home);
        return installation ? installation->agents : std::string();
      });
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(home));
  DYNAMICCL_TRY(std::vector<std::string> command,
                SiblingCommand(installation.agents, "dynamiccl-agents", line));
  command.insert(command.begin() + 1, "eval");
  DYNAMICCL_CHECK_OK(NamePolicies(installation, "--policy", command));
  DYNAMICCL_CHECK_OK(BecomeSibling(NameInputs(command, "--policy")));
  return kExitEnvironment;
}

}  // namespace dynamiccl
