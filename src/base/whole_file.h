// SPDX-License-Identifier: Apache-2.0
// Files of ours that are read and written as a whole: nobody ever sees half of one, and no link or pipe is
// followed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

struct WholeFile {
  std::vector<std::byte> bytes;
  bool others_may_write = false;  // its group, everybody, or an owner who is neither this user nor root
};

// A regular file, opened once and copied: later changes have no effect. Of a file longer than `most_bytes`
// the first most_bytes + 1 are read, so that a reader can refuse it by its length.
Result<WholeFile> ReadWholeFile(const std::string& path, size_t most_bytes);

// Written beside `path`, synced and renamed.
Status WriteWholeFile(const std::string& path, std::span<const std::byte> bytes);

}  // namespace dynamiccl
