// SPDX-License-Identifier: Apache-2.0
// Checks paths that a user named: whether a path stands for a regular file, and whether an output file can be
// written to it. Reading a pipe or a device can wait or run forever, and renaming a file over a device
// destroys it. All functions may be called from any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Fails with kInvalidArgument unless `fd` is open on a regular file. `path` is used in the message only.
Status CheckIsFile(int fd, const std::string& path);
// Makes the same check by path, for readers that open the file themselves. A path that does not exist passes:
// the reader reports that with a better message.
Status CheckIsFile(const std::string& path);
// Passes when a new file may be renamed to `path`: it names a regular file, a link to one, or nothing.
// Renaming over /dev/null as root would replace it for every program of the machine.
Status CheckReplaceable(const std::string& path);
// Passes when `path` is no folder, and its folder exists, may be written by this user, and is on a disk that
// is not full. Fails with kInvalidArgument. An empty path passes, because it names no file. A pipe or a
// device passes too, because no file is made beside it: writers of traces and measurements write into it.
Status CheckFolderOf(const std::string& path);
// Passes when a new file can be put at each of the paths, by CheckReplaceable and CheckFolderOf. A program
// that works long before it writes its results calls this first. Writes nothing. Empty paths pass.
Status CheckOutputs(std::initializer_list<std::string> paths);
// Passes when the folder `path` can be made, or exists and may be written. Makes nothing. An empty path
// passes.
Status CheckOutputFolder(const std::string& path);
// Fails with kInvalidArgument when `output` is one of the files `inputs`: writing it would destroy what was
// read.
Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs);
// Makes sure that opening the pipe `path` for writing does not block. Hold the result until the pipe is open:
// it is a write end of the pipe, and it is empty for everything but pipes. Fails with kUnavailable when no
// process has the pipe open for reading.
Result<UniqueFd> HoldReader(const std::string& path);

}  // namespace dynamiccl
