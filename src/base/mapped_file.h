// SPDX-License-Identifier: Apache-2.0
// A read-only mapping for readers that look at a few places of a large file, such as symbol tables of shared
// objects.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Maps a regular file that belongs to another program and unmaps it when destroyed. Pages are read from disk
// when they are touched. If another process shortens the file meanwhile, a read past its new end raises
// SIGBUS, so map only files that nobody shortens in place. Read access from any thread.
class MappedFile {
 public:
  // Errors: kNotFound if the file cannot be opened, kInvalidArgument for a pipe, device or folder,
  // kUnavailable if it cannot be mapped. An empty file gives an empty span.
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
