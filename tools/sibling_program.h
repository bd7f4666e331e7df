// SPDX-License-Identifier: Apache-2.0
// Starts the programs beside `dynamiccl` that need LibTorch, with the arguments that are not for `dynamiccl`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/command_line.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// The command that runs the program at `path` (from Installation): first the words of `line` that no
// registered option consumed, then those after "--". An empty path is an error that says that this build
// lacks the program `name` (exit code 3).
Result<std::vector<std::string>> SiblingCommand(const std::string& path, const std::string& name,
                                                CommandLine& line);

// Replaces the word starter among the values of `option` in `words` by the path of the shipped policy
// (installation.h). It handles `--option=VALUE` and any number of values after `--option`.
Status NamePolicies(const Installation& installation, const std::string& option,
                    std::vector<std::string>& words);

// Inserts the option that belongs to an input file without one: --trace before files that end in .ctrace or
// .ctracez, --measurements before .measurements, and the option `policy` before .dcpolicy (an empty `policy`
// inserts none).
std::vector<std::string> NameInputs(const std::vector<std::string>& words, const std::string& policy);

// Sets the text below the help of `line`. It is `footer`; when the user asks for help, the options that
// `program COMMAND` prints about itself follow. Manual pages and completions get the same options from
// CommandLine::MoreOptions. `path` returns the program's path when the help is printed; if the path is empty,
// the options are left out.
void SetSiblingHelp(CommandLine& line, const std::string& command, const std::string& footer,
                    std::function<std::string()> path);

// Replaces this process by `command` through exec. Returns only when that fails.
Status BecomeSibling(const std::vector<std::string>& command);

}  // namespace dynamiccl
