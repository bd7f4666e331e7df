// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// The last line is looked for in this many bytes at the end of a job's output, and quoted up to kQuotedBytes.
constexpr std::streamoff kEndBytes = 4096;
constexpr size_t kQuotedBytes = 200;

bool IsLetter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// Returns the place after the escape sequence that begins at `at`: "ESC [ parameters letter" sets colours and
// the like, "ESC ] text" sets a title and ends with BEL or "ESC \", and others are short, as "ESC ( B".
size_t EndOfEscape(std::string_view text, size_t at) {
  const std::string_view kind = text.substr(at + 1, 1);
  if (kind == "]") {
    const size_t end = std::min(text.find_first_of("\a\x1b\n", at + 1), text.size());
    const std::string_view rest = text.substr(end, 2);
    return end + (rest.starts_with('\a') ? 1 : rest == "\x1b\\" ? 2 : 0);
  }
  size_t end = at + 1 + (kind == "[" ? 1 : 0);
  const char last_parameter = kind == "[" ? '?' : '/';
  while (end < text.size() && text[end] >= ' ' && text[end] <= last_parameter) ++end;
  return end < text.size() && text[end] >= ' ' ? end + 1 : end;
}

std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const size_t escape = std::min(text.find('\x1b', at), text.size());
    plain += text.substr(at, escape - at);
    at = escape == text.size() ? escape : EndOfEscape(text, escape);
  }
  return plain;
}

// True for a byte within a character of UTF-8 that is not its first one.
bool ContinuesCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Returns the beginning of the text, cut between characters of UTF-8.
std::string_view Quoted(std::string_view text) {
  if (text.size() <= kQuotedBytes) return text;
  size_t end = kQuotedBytes;
  while (end > 0 && ContinuesCharacter(text[end])) --end;
  return text.substr(0, end);
}

// Returns the last line of the file that has a letter, so that a ruled line of torchrun's is not taken for
// it. A progress bar writes its line anew after each carriage return; only its last state counts. Escape
// sequences of terminals are not passed on. Empty if there is none.
std::string LastLineOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kEndBytes));
  std::string text = WithoutEscapes(std::string(std::istreambuf_iterator<char>(file), {}));
  std::ranges::replace(text, '\r', '\n');
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (std::ranges::any_of(line, IsLetter)) last = line;
  std::ranges::replace_if(
      last, [](char byte) { return static_cast<unsigned char>(byte) < ' '; }, ' ');
  // The part of the file that was read may begin within a character.
  last.erase(last.begin(), std::ranges::find_if_not(last, ContinuesCharacter));
  return std::string(Quoted(last));
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
