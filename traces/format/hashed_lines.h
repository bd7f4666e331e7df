// SPDX-License-Identifier: Apache-2.0
// Journals: files of lines "HEX16 TEXT", where HEX16 is the XXH3 hash (64 bits, seed 0) of the text. A
// process appends a line when it has finished something, so that another can go on after it was killed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

struct HashedLines {
  std::vector<std::string> texts;  // at least one
  size_t whole_bytes = 0;          // without the last line where that is torn
  bool torn = false;
};

// A last line that is cut or damaged is left out, since a write may be cut at any byte; damage before it, and
// an empty file, are kCorrupt and name the line. kNotFound without a file.
Result<HashedLines> ReadHashedLines(const std::string& path);

// Appends lines. One process at a time; each line is one write, so that the death of the process tears at
// most the last. The machine's own death may lose more: nothing is synced.
class HashedLineWriter {
 public:
  // Begins a file, over what was there.
  static Result<HashedLineWriter> Create(const std::string& path);
  // Goes on after the first `whole_bytes`; what follows them is cut off.
  static Result<HashedLineWriter> Continue(const std::string& path, size_t whole_bytes);

  Status Write(std::string_view text);

 private:
  HashedLineWriter(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  UniqueFd file_;
  std::string path_;
};

}  // namespace dynamiccl
