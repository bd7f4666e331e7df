// SPDX-License-Identifier: Apache-2.0
// A file to be read in a few places only: nothing of it is read before it is looked at.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// A regular file of another program, mapped for reading. Whoever shortens it meanwhile takes the reader down
// with SIGBUS: for files that nobody shortens.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace dynamiccl
