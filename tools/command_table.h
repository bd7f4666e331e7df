// SPDX-License-Identifier: Apache-2.0
// The table of commands: main, the help, did-you-mean and the tests of the command line all read it.
#pragma once

#include <span>

#include "src/base/status.h"
#include "tools/command_line.h"

namespace dynamiccl {

// Registers its options on `line`, parses, runs and returns the exit code. An error is printed by main and
// mapped to an exit code (tools/exit_code.h). Data goes to stdout, talk to stderr.
using CommandFunction = Result<int> (*)(CommandLine& line);

#define DYNAMICCL_COMMAND(name, function, sentence, examples) Result<int> function(CommandLine& line);
#include "tools/command_table.def"
#undef DYNAMICCL_COMMAND

struct CommandRow {
  CommandText text;
  CommandFunction function;
};

std::span<const CommandRow> AllCommands();

// Dispatches `arguments` (without the program's name) and returns the exit code of the process.
int RunDynamiccl(std::vector<std::string> arguments);

}  // namespace dynamiccl
