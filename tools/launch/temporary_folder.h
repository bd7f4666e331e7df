// SPDX-License-Identifier: Apache-2.0
// A temporary folder for files that only this process and its ranks read.
#pragma once

#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl {

// Owns a folder that only this user can read (mode 0700) and removes it with all its files when destroyed. A
// process that is killed leaves the folder behind.
class TemporaryFolder {
 public:
  // Creates "dynamiccl-<purpose>-XXXXXX" in the system's temporary folder ($TMPDIR or /tmp). It is an error
  // (kUnavailable) when that folder cannot be written.
  static Result<TemporaryFolder> Create(const std::string& purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  // Path of the file `name` in the folder; the file need not exist.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace dynamiccl
