// SPDX-License-Identifier: Apache-2.0
// The commands of `dynamiccl`: main, the help, completions and manual pages all read this table.
#pragma once

#include <span>

#include "tools/command_program.h"

namespace dynamiccl {

#define DYNAMICCL_COMMAND(name, function, sentence, examples) Result<int> function(CommandLine& line);
#define DYNAMICCL_HELPER DYNAMICCL_COMMAND
#include "tools/command_table.def"
#undef DYNAMICCL_HELPER
#undef DYNAMICCL_COMMAND

std::span<const CommandRow> AllCommands();

// Dispatches `arguments` (without the program's name) and returns the exit code of the process.
int RunDynamiccl(std::vector<std::string> arguments);

}  // namespace dynamiccl
