// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// The last line is looked for in this many bytes at the end of a job's output, and quoted up to kQuotedBytes.
constexpr std::streamoff kEndBytes = 4096;
constexpr size_t kQuotedBytes = 200;

bool IsLetter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// Returns the last line of the file that has a letter, so that no ruler of torchrun is taken for it. Escape
// sequences of terminals are not passed on. Empty if there is none.
std::string LastLineOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kEndBytes));
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (std::ranges::any_of(line, IsLetter)) last = line;
  std::ranges::replace_if(
      last, [](char byte) { return static_cast<unsigned char>(byte) < ' '; }, ' ');
  return last.substr(0, kQuotedBytes);
}

}  // namespace

Result<OwnFile> ClaimOutputFolder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "cannot create '{}': {}", folder, failed.message()),
        "name a folder that can be written with -o");
  }
  DYNAMICCL_TRY(auto lock, ClaimOwnFile(folder + "/dynamiccl.lock", O_WRONLY));
  if (lock) return std::move(*lock);
  return WithHint(
      MakeError(ErrorKind::kUnavailable, "another tune, pilot or demo is running in '{}'", folder),
      "wait until it ends, or name another folder with -o");
}

void BeginLog(const std::string& path) {
  fs::path earlier = path;
  std::error_code ignored;
  fs::rename(path, earlier.replace_extension(".earlier" + earlier.extension().string()), ignored);
}

std::string OutputHint(const std::string& path) {
  const std::string last = LastLineOf(path);
  return fmt::format("its output is in {}{}{}", path, last.empty() ? "" : " and ends with: ", last);
}

}  // namespace dynamiccl
