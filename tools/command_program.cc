// SPDX-License-Identifier: Apache-2.0
#include "tools/command_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "src/base/nearest_name.h"
#include "tools/command_line.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

const CommandRow* FindCommand(const CommandProgram& program, std::string_view name) {
  for (const CommandRow& row : program.commands) {
    if (name == row.text.name) return &row;
  }
  return nullptr;
}

size_t WidestName(const CommandProgram& program) {
  size_t widest = 0;
  for (const CommandRow& row : program.commands)
    widest = std::max(widest, std::string_view(row.text.name).size());
  return widest;
}

void PrintCommands(FILE* stream, const CommandProgram& program, bool for_scripts) {
  for (const CommandRow& row : program.commands) {
    if (row.for_scripts == for_scripts)
      fmt::print(stream, "  {:<{}} {}\n", row.text.name, WidestName(program), row.text.sentence);
  }
}

int PrintHelp(FILE* stream, const CommandProgram& program, int exit_code) {
  fmt::print(stream, "{} {}: {}\n\nExamples:\n{}", program.name, kVersion, program.sentence,
             IndentLines(program.examples));
  fmt::print(stream, "\nCommands ({} COMMAND --help says more):\n", program.name);
  PrintCommands(stream, program, false);
  bool any = false;
  for (const CommandRow& row : program.commands) any = any || row.for_scripts;
  if (!any) return exit_code;
  fmt::print(stream, "\nFor shells and scripts:\n");
  PrintCommands(stream, program, true);
  return exit_code;
}

int ReportUnknownCommand(const CommandProgram& program, const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandRow& row : program.commands) known.push_back(row.text.name);
  const std::string similar = SimilarName(name, known);
  const Error error{
      ErrorKind::kInvalidArgument, fmt::format("{}: no command '{}'", program.name, name),
      fmt::format("{}`{} --help` lists all",
                  similar.empty() ? "" : fmt::format("did you mean `{} {}`? ", program.name, similar),
                  program.name)};
  fmt::print(stderr, "{}", Describe(error));
  return kExitUsage;
}

// Runs a command until all that it printed is written. An exception of the standard library, and a standard
// output that cannot be written, are errors like those that the command returns.
Result<int> RunToTheEnd(const CommandRow& row, CommandLine& line) {
  try {
    Result<int> result = row.function(line);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return result;
    return WithHint(
        MakeError(ErrorKind::kUnavailable, "standard output cannot be written: {}", ErrnoText(errno)),
        "what was printed is not complete: make room on that disk, or choose another file");
  } catch (const std::exception& error) {
    const bool printed = std::ferror(stdout) == 0;
    return MakeError(ErrorKind::kUnavailable, "{}{}", printed ? "" : "standard output: ", error.what());
  }
}

}  // namespace

int RunCommandProgram(const CommandProgram& program, std::vector<std::string> arguments) {
  if (arguments.empty()) return PrintHelp(stderr, program, kExitUsage);
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "-h" || name == "--help" || (name == "help" && arguments.empty()))
    return PrintHelp(stdout, program, kExitOk);
  if (name == "--version") {
    fmt::print("{} {} ({})\n", program.name, kVersion, InstalledAs());
    return kExitOk;
  }
  if (name == "help") name = std::exchange(arguments, {"--help"}).front();
  const CommandRow* row = FindCommand(program, name);
  if (row == nullptr) return ReportUnknownCommand(program, name);
  CommandLine line(row->text, arguments);
  const Result<int> result = RunToTheEnd(*row, line);
  if (result) return *result;
  Error error = result.error();
  const std::string made = HowToMakeMissing(arguments, error.message);
  if (error.kind == ErrorKind::kNotFound && !made.empty()) error.hint = made;
  fmt::print(stderr, "{}", Describe(error));
  return ExitCodeOf(error.kind);
}

}  // namespace dynamiccl
