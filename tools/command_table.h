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

// All commands in the order of tools/command_table.def, which is also that of the help.
std::span<const CommandRow> AllCommands();

// Runs the command that `arguments` name (the program's own name is not among them) and returns the exit code
// of the process. Errors have been printed on standard error by then.
int RunDynamiccl(std::vector<std::string> arguments);

}  // namespace dynamiccl
