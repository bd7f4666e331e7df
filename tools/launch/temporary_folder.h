// SPDX-License-Identifier: Apache-2.0
// A folder for files that only this process and its ranks see, gone with the object.
#pragma once

#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl {

class TemporaryFolder {
 public:
  // `purpose` stands in its name: "dynamiccl-<purpose>-XXXXXX" in the system's temporary folder.
  static Result<TemporaryFolder> Create(const std::string& purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryFolder();

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace dynamiccl
