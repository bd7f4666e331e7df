// SPDX-License-Identifier: Apache-2.0
// Every command with its options, as the commands themselves register them. Completions and manual pages are
// made from these descriptions, so they cannot be out of date.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// One option or positional argument.
struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; a positional argument's one name is without dashes
  // Placeholder such as "PATH"; empty for a flag.
  std::string value;
  // All values, where the option lists them.
  std::vector<std::string> choices;
  std::string sentence;
  std::string default_value;
  bool required = false;

  bool positional() const { return !names.front().starts_with('-'); }
};

// A command or one of its actions.
struct DescribedCommand {
  // Full name of the command, for example "trace import".
  std::string name;
  std::string sentence;
  std::vector<std::string> examples;
  std::vector<DescribedOption> options;
  // Subcommands: "trace import" is one of "trace".
  std::vector<DescribedCommand> actions;
  std::string footer;
};

// All commands in the order of the help. No command is executed, but programs that take options in a
// command's name (`dynamiccl train`) are asked for their help.
std::vector<DescribedCommand> DescribeCommands();

// Manual pages (section 1) in the man macros of groff: https://man7.org/linux/man-pages/man7/man.7.html

// dynamiccl.1: what the program is, every command, exit codes, environment, files.
std::string ManPageOfProgram(const std::vector<DescribedCommand>& commands);

// The page dynamiccl-NAME.1 of one command.
std::string ManPageOf(const DescribedCommand& command);

// The completion script for `shell`, which is bash, zsh or fish; for any other name the error lists these
// three. The script offers commands, actions and options. After an option it offers the option's listed
// values, or else file names.
Result<std::string> CompletionScript(const std::string& shell, const std::vector<DescribedCommand>& commands);

}  // namespace dynamiccl
