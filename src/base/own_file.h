// SPDX-License-Identifier: Apache-2.0
// Files in which this process writes down what others are not to read.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

struct OwnFile {
  UniqueFd fd;       // locked (flock(2)) until it and its copies in children are closed
  std::string path;  // where it is
};

// A new file of mode 0600, opened for writing with `flags` of open(2), in place of a regular file of this
// user that is there: whoever still has that one mapped keeps it. Nothing: another process holds it. No link
// is followed, no pipe or device replaced, and no file of another user, who put it there to read what is
// written. kUnavailable says why not.
Result<std::optional<OwnFile>> ClaimOwnFile(const std::string& path, int flags);

// The same; where another process holds it, as with ranks that are all given one name, the new file stands
// beside it with the process id before the ending, and a line says so.
Result<OwnFile> CreateOwnFile(const std::string& path, int flags);

}  // namespace dynamiccl
