// SPDX-License-Identifier: Apache-2.0
// Files in which this process writes down what others are not to read.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Opens with `flags` of open(2), for writing: a new file of mode 0600, or the regular file of this user that
// is there, emptied. No link is followed, no pipe or device taken, and no file of another user, who put it
// there to read what is written. kUnavailable says why not.
Result<UniqueFd> CreateOwnFile(const std::string& path, int flags);

}  // namespace dynamiccl
