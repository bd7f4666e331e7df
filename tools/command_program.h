// SPDX-License-Identifier: Apache-2.0
// A program whose first word is a command: `dynamiccl`, and `dynamiccl-lab` of studies/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/command_line.h"

namespace dynamiccl {

// The function of a command. It registers the command's options on `line`, parses the line, runs the command
// and returns the exit code. RunCommandProgram prints an error and maps it to an exit code
// (tools/exit_code.h). Results go to stdout, messages to stderr.
using CommandFunction = Result<int> (*)(CommandLine& line);

struct CommandRow {
  CommandText text;
  CommandFunction function;
  bool for_scripts = false;  // listed in the second part of the help
};

struct CommandProgram {
  const char* name;      // "dynamiccl"
  const char* sentence;  // what it does; a full stop at its end
  const char* examples;  // one on each line
  std::span<const CommandRow> commands;
};

// Dispatches `arguments` (without the program's name) and returns the exit code of the process.
int RunCommandProgram(const CommandProgram& program, std::vector<std::string> arguments);

}  // namespace dynamiccl
