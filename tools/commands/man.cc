// SPDX-License-Identifier: Apache-2.0
// `dynamiccl man`: writes manual pages, made from the commands' own descriptions. One page goes to standard
// output, all of them into a folder:
//
//   dynamiccl man run | man -l -
//   dynamiccl man -o man1
#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "src/base/nearest_name.h"
#include "src/base/whole_file.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/manual/described_command.h"

namespace dynamiccl {
namespace {

// The page of a command, or of the program where `name` is empty.
Result<std::string> PageOf(const std::string& name, const std::vector<DescribedCommand>& commands) {
  if (name.empty()) return ManPageOfProgram(commands);
  std::vector<std::string_view> known;
  for (const DescribedCommand& command : commands) {
    if (command.name == name) return ManPageOf(command);
    known.push_back(command.name);
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "man: no command '{}'", name),
                  fmt::format("did you mean {}?", NearestName(name, known)));
}

Status WritePage(const std::string& path, const std::string& page) {
  return WriteWholeFile(path, std::as_bytes(std::span(page)));
}

// Writes every page into the folder, which is created.
Status WriteAll(const std::string& folder, const std::vector<DescribedCommand>& commands) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return MakeError(ErrorKind::kUnavailable, "{}: {}", folder, failure.message());
  DYNAMICCL_CHECK_OK(WritePage(folder + "/dynamiccl.1", ManPageOfProgram(commands)));
  for (const DescribedCommand& command : commands)
    DYNAMICCL_CHECK_OK(WritePage(fmt::format("{}/dynamiccl-{}.1", folder, command.name), ManPageOf(command)));
  return {};
}

}  // namespace

Result<int> ManCommand(CommandLine& line) {
  std::string name;
  std::string folder;
  line.app().add_option("command", name, "Command whose page is printed (default: the program's)");
  line.app().add_option("-o,--output", folder, "Folder to write every page into, in place of printing one");
  if (const auto exit_code = line.Parse()) return *exit_code;
  const std::vector<DescribedCommand> commands = DescribeCommands();
  if (!folder.empty()) {
    DYNAMICCL_CHECK_OK(WriteAll(folder, commands));
    return kExitOk;
  }
  DYNAMICCL_TRY(const std::string page, PageOf(name, commands));
  fmt::print("{}", page);
  return kExitOk;
}

}  // namespace dynamiccl
