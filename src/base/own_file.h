// SPDX-License-Identifier: Apache-2.0
// Files that hold what other users must not read, such as traces. They are created with mode 0600, are never
// written through a link, and are locked so that two processes cannot write the same file.
#pragma once

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// An open file of this process. The lock (flock(2)) is held until `fd` and its copies in child processes are
// closed. `path` is where the file is now, which may differ from the path that was asked for.
struct OwnFile {
  UniqueFd fd;
  std::string path;
};

// Makes the folder of `path` ("traces" of "traces/0.ctrace") unless it exists. The folder above it is not
// made: a mistyped path leaves no tree of folders. If it fails, creating the file fails too and says why.
void MakeFolderOf(const std::string& path);

// Creates a new file of mode 0600 at `path` and opens it with `flags` of open(2). A regular file of this user
// that is already there is replaced; a process that still has the old file mapped keeps it. Returns nothing
// when another process holds the lock. Fails with kUnavailable, and says why, at a link, a pipe, a device or
// a file of another user, who could have put it there to read what is written.
Result<std::optional<OwnFile>> ClaimOwnFile(const std::string& path, int flags);

// Claims a file as ClaimOwnFile does. If another process holds it, as when all ranks were given one name,
// this creates a file beside it with the process id before the extension, and logs one warning.
Result<OwnFile> CreateOwnFile(const std::string& path, int flags);

// Returns true if a process that claimed the file, or a child of it, may still have it open. Also returns
// true if the file cannot be opened, or if its file system has no locks. Takes a shared lock for a moment.
bool IsClaimed(const std::string& path);

}  // namespace dynamiccl
