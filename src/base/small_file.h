// SPDX-License-Identifier: Apache-2.0
// Small text files that are read and replaced as a whole: rules, saved decisions, metrics.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Returns the file's contents. Errors name the path: kNotFound when it cannot be opened or read,
// kInvalidArgument when it is no regular file or longer than `most_bytes`.
Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);

// Writes a temporary file beside `path` and renames it, so that a reader sees the old or the new text and
// never half of one. Returns false, and leaves the old file, when anything fails. The data are not
// synchronised to disk: after a power failure the file may be empty. WriteWholeFile of whole_file.h
// synchronises.
bool ReplaceFile(const std::string& path, const std::string& text);

}  // namespace dynamiccl
