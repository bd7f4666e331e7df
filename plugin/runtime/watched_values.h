// SPDX-License-Identifier: Apache-2.0
// The file of live values (DYNAMICCL_VALUES) that the leader watches while a job runs.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "src/decision/agreed_values.h"

namespace dynamiccl {

// Owned by the leader's WatchedFiles; only its thread uses it.
class WatchedValues {
 public:
  // Empty path: nothing is watched.
  explicit WatchedValues(std::string path) : path_(std::move(path)) {}

  // Returns the values that have changed in the file since the last call. Reads the file only if its inode,
  // size or time has changed. A file with a wrong line is logged once and changes nothing.
  AgreedValues Changes();
  // Returns the values as the file states them. A value that was removed from the file keeps its last number.
  const AgreedValues& values() const { return values_; }

 private:
  const std::string path_;
  AgreedValues values_;
  struct stat seen_ = {};
};

}  // namespace dynamiccl
