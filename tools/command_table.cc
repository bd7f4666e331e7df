// SPDX-License-Identifier: Apache-2.0
#include "tools/command_table.h"

#include <fmt/format.h>

#include <cstdio>

#include "src/base/nearest_name.h"
#include "tools/command_line.h"
#include "tools/exit_code.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

constexpr CommandRow kCommands[] = {
#define DYNAMICCL_COMMAND(name, function, sentence, examples) {{#name, sentence, examples}, function},
#include "tools/command_table.def"
#undef DYNAMICCL_COMMAND
};

const CommandRow* FindCommand(std::string_view name) {
  for (const CommandRow& row : kCommands) {
    if (name == row.text.name) return &row;
  }
  return nullptr;
}

int PrintHelp(FILE* stream, int exit_code) {
  fmt::print(
      stream,
      "dynamiccl {}: chooses NCCL's algorithm, protocol and channels from what a training job is doing.\n\n"
      "Examples:\n"
      "  dynamiccl doctor\n"
      "  dynamiccl demo --quick\n"
      "  dynamiccl run --policy p.dcpolicy -- torchrun --nproc-per-node 8 train.py\n\n"
      "Commands (dynamiccl COMMAND --help says more):\n",
      kVersion);
  for (const CommandRow& row : kCommands)
    fmt::print(stream, "  {:<10} {}\n", row.text.name, row.text.sentence);
  return exit_code;
}

int ReportUnknownCommand(const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandRow& row : kCommands) known.push_back(row.text.name);
  const Error error{
      ErrorKind::kInvalidArgument, fmt::format("dynamiccl: no command '{}'", name),
      fmt::format("did you mean `dynamiccl {}`? `dynamiccl --help` lists all", NearestName(name, known))};
  fmt::print(stderr, "{}", Describe(error));
  return kExitUsage;
}

}  // namespace

std::span<const CommandRow> AllCommands() {
  return kCommands;
}

int RunDynamiccl(std::vector<std::string> arguments) {
  if (arguments.empty()) return PrintHelp(stderr, kExitUsage);
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "-h" || name == "--help" || (name == "help" && arguments.empty()))
    return PrintHelp(stdout, kExitOk);
  if (name == "--version") name = "version";
  if (name == "help") name = std::exchange(arguments, {"--help"}).front();
  const CommandRow* row = FindCommand(name);
  if (row == nullptr) return ReportUnknownCommand(name);
  CommandLine line(row->text, arguments);
  const Result<int> result = row->function(line);
  if (result) return *result;
  Error error = result.error();
  if (const std::string made = HowToMakeMissing(arguments, error.message); !made.empty()) error.hint = made;
  fmt::print(stderr, "{}", Describe(error));
  return ExitCodeOf(error.kind);
}

}  // namespace dynamiccl
