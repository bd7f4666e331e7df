// SPDX-License-Identifier: Apache-2.0
// Files of ours that are read and written as a whole, such as policies and site stores. A reader never sees
// half of one, and no symbolic link or pipe is followed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// A file's contents at one moment. `others_may_write` tells readers of trusted files that somebody else could
// have changed it: its group, everybody, or an owner who is neither this user nor root.
struct WholeFile {
  std::vector<std::byte> bytes;
  bool others_may_write = false;
};

// Opens a regular file once and copies it; later changes have no effect. From a file longer than `most_bytes`
// the first most_bytes + 1 bytes are read, so that the caller can refuse it by its length. Errors: kNotFound,
// kInvalidArgument for a link or another kind of file, kUnavailable.
Result<WholeFile> ReadWholeFile(const std::string& path, size_t most_bytes);

// Writes a temporary file beside `path`, synchronises it to disk and renames it. On failure the old file
// stays and the temporary one is removed.
Status WriteWholeFile(const std::string& path, std::span<const std::byte> bytes);

// Small text files that are read and replaced as a whole: rules, saved decisions, metrics.

// Returns the file's contents. Errors name the path: kNotFound when it cannot be opened or read,
// kInvalidArgument when it is no regular file or longer than `most_bytes`.
Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);

// Writes a temporary file beside `path` and renames it, so that a reader sees the old or the new text and
// never half of one. Returns false, and leaves the old file, if anything fails. The data are not synchronised
// to disk, so the file may be empty after a power failure. WriteWholeFile synchronises.
bool ReplaceFile(const std::string& path, const std::string& text);

}  // namespace dynamiccl
