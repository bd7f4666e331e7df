// SPDX-License-Identifier: Apache-2.0
// `dynamiccl train` trains both agents from traces and measurements, `dynamiccl eval` says how good a policy
// is on them. The work is done by dynamiccl-agents, which replaces this process.
#include <fmt/format.h>

#include "src/base/file_kind.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/sibling_program.h"

namespace dynamiccl {
namespace {

// Returns the values that the words of a command line give the option.
std::vector<std::string> ValuesOf(std::string_view option, const std::vector<std::string>& words) {
  std::vector<std::string> values;
  const std::string joined = fmt::format("{}=", option);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) values.push_back(words[i + 1]);
    if (words[i].starts_with(joined)) values.push_back(words[i].substr(joined.size()));
  }
  return values;
}

// A training takes minutes, so what dynamiccl-agents would write at its end is checked before it begins.
// dynamiccl-agents renames a policy into its place, but writes JSON directly, so JSON may also go into a pipe
// or a device.
Status CheckOutputsIn(const std::vector<std::string>& words) {
  for (const char* const option : {"-o", "--output"})
    for (const std::string& path : ValuesOf(option, words)) DYNAMICCL_CHECK_OK(CheckOutputs({path}));
  for (const std::string& path : ValuesOf("--json", words))
    if (path != "-") DYNAMICCL_CHECK_OK(CheckFolderOf(path));
  return {};
}

// Runs the command `name` of dynamiccl-agents. The names of shipped policies are allowed as values of
// `policy_option`. `of_policies` is the option that is put before a policy file without one; empty: none.
Result<int> RunAgents(CommandLine& line, const std::string& name, const std::string& inputs,
                      const std::string& policy_option, const std::string& of_policies) {
  std::string home;
  line.app().add_option("--home", home, "Installation to use (default: the one of this program)");
  line.app().allow_extras();
  SetSiblingHelp(line, name,
                 inputs +
                     "\nEverything else is handed to dynamiccl-agents; where a build has it, `dynamiccl " +
                     name + " --help` lists its options.",
                 [&home] {
                   const auto installation = FindInstallation(home);
                   return installation ? installation->agents : std::string();
                 });
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputsIn(line.app().remaining()));
  DYNAMICCL_TRY(const Installation installation, FindInstallation(home));
  DYNAMICCL_TRY(std::vector<std::string> command,
                SiblingCommand(installation.agents, "dynamiccl-agents", line));
  command.insert(command.begin() + 1, name);
  DYNAMICCL_CHECK_OK(NamePolicies(installation, policy_option, command));
  DYNAMICCL_CHECK_OK(BecomeSibling(NameInputs(command, of_policies)));
  return kExitEnvironment;
}

}  // namespace

Result<int> TrainCommand(CommandLine& line) {
  return RunAgents(
      line, "train",
      "Files that end in .ctrace, .ctracez and .measurements need no --trace or --measurements before them.",
      "--from", {});
}

Result<int> EvalCommand(CommandLine& line) {
  return RunAgents(
      line, "eval",
      "Files that end in .dcpolicy, .ctrace, .ctracez and .measurements need no option before them.",
      "--policy", "--policy");
}

}  // namespace dynamiccl
