// SPDX-License-Identifier: Apache-2.0
// The programs beside `dynamiccl` that need LibTorch: handed the arguments that are not ours.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// `path` (from Installation) and the words of `line` that our options left over, then those after "--". An
// empty path is an error that says that the build lacks the program (exit code 3).
Result<std::vector<std::string>> SiblingCommand(const std::string& path, const std::string& name,
                                                CommandLine& line);

// Among the values of `option` the word starter becomes the file that it stands for (installation.h).
Status NamePolicies(const Installation& installation, const std::string& option,
                    std::vector<std::string>& words);

// Replaces this process; returns only when that fails.
Status BecomeSibling(const std::vector<std::string>& command);

}  // namespace dynamiccl
