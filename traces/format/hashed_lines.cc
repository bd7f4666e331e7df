// SPDX-License-Identifier: Apache-2.0
#include "traces/format/hashed_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "traces/format/json_lines.h"

namespace dynamiccl {
namespace {

constexpr size_t kHashLetters = 16;

// The text of a line, empty where the line is damaged.
std::string_view TextOf(std::string_view line) {
  if (line.size() < kHashLetters + 1 || line[kHashLetters] != ' ') return {};
  const std::string_view text = line.substr(kHashLetters + 1);
  return TextHashOf(text) == line.substr(0, kHashLetters) ? text : std::string_view();
}

}  // namespace

Result<HashedLines> ReadHashedLines(const std::string& path) {
  DYNAMICCL_TRY(const std::string content, ReadWholeFile(path));
  HashedLines lines;
  while (lines.whole_bytes < content.size()) {
    const size_t newline = content.find('\n', lines.whole_bytes);
    const bool last = newline == std::string::npos || newline + 1 == content.size();
    const auto text =
        newline == std::string::npos
            ? std::string_view()
            : TextOf(std::string_view(content).substr(lines.whole_bytes, newline - lines.whole_bytes));
    lines.torn = text.empty();
    if (lines.torn && last && !lines.texts.empty()) break;
    if (lines.torn) {
      return MakeError(ErrorKind::kCorrupt, "{}:{}: damaged: the hash is not the record's", path,
                       lines.texts.size() + 1);
    }
    lines.texts.emplace_back(text);
    lines.whole_bytes = newline + 1;
  }
  if (lines.texts.empty()) return MakeError(ErrorKind::kCorrupt, "{}: empty", path);
  return lines;
}

Result<HashedLineWriter> HashedLineWriter::Create(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (file.valid()) return HashedLineWriter(std::move(file), path);
  return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
}

Result<HashedLineWriter> HashedLineWriter::Continue(const std::string& path, size_t whole_bytes) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid())
    return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  if (::ftruncate(file.get(), static_cast<off_t>(whole_bytes)) == 0)
    return HashedLineWriter(std::move(file), path);
  return MakeError(ErrorKind::kUnavailable, "cannot cut '{}': {}", path, ErrnoText(errno));
}

Status HashedLineWriter::Write(std::string_view text) {
  const std::string line = fmt::format("{} {}\n", TextHashOf(text), text);
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  return WithHint(MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path_,
                            written < 0 ? ErrnoText(errno) : "no space left"),
                  "make room on that disk and start again: what was finished is kept");
}

}  // namespace dynamiccl
