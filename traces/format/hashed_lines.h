// SPDX-License-Identifier: Apache-2.0
// Journals: files of lines "HEX16 TEXT", where HEX16 is the XXH3 hash (64 bits, seed 0) of the text. A
// process appends a line when it has finished a piece of work. If the process is killed, a later process
// continues after the last complete line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

struct HashedLines {
  std::vector<std::string> texts;  // at least one
  size_t whole_bytes = 0;          // length of the file without a torn last line
  bool torn = false;
};

// Reads a journal. A last line that is cut or damaged is left out, since a write may be cut at any byte.
// Damage before the last line, and an empty file, are kCorrupt with the line's number. A missing file is
// kNotFound.
Result<HashedLines> ReadHashedLines(const std::string& path);

// Appends lines to a journal, from one process at a time. Each line is one write, so the death of the process
// can tear only the last line. A crash of the machine may lose more, because nothing is synced to disk.
class HashedLineWriter {
 public:
  // Creates the file, or overwrites an existing one.
  static Result<HashedLineWriter> Create(const std::string& path);
  // Opens the file, cuts it after the first `whole_bytes` and appends there.
  static Result<HashedLineWriter> Continue(const std::string& path, size_t whole_bytes);

  Status Write(std::string_view text);

 private:
  HashedLineWriter(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  UniqueFd file_;
  std::string path_;
};

}  // namespace dynamiccl
