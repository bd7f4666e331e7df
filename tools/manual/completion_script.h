// SPDX-License-Identifier: Apache-2.0
// What makes a shell complete `dynamiccl`: commands, actions, options, listed values, else files.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/manual/described_command.h"

namespace dynamiccl {

// `shell`: bash, zsh or fish; another name is an error that lists these.
Result<std::string> CompletionScript(const std::string& shell, const std::vector<DescribedCommand>& commands);

}  // namespace dynamiccl
