// SPDX-License-Identifier: Apache-2.0
// Whether a path that somebody named stands for a file: pipes, devices and folders hang, never end or are
// destroyed where a file was expected.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// What is open is a regular file. `path` is for the error.
Status CheckIsFile(int fd, const std::string& path);
// The same of a path, for readers that open it themselves. A path that does not exist is left to them.
Status CheckIsFile(const std::string& path);
// A new file may take the place of `path`: it is a file or a link to one, or there is nothing. Renaming over
// anything else would destroy it: /dev/null for every program of the machine.
Status CheckReplaceable(const std::string& path);
// Opening `path` to write does not wait for ever as long as the result is held, which is empty for all but
// pipes; an error for a pipe without a reader.
Result<UniqueFd> HoldReader(const std::string& path);

}  // namespace dynamiccl
