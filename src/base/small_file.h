// SPDX-License-Identifier: Apache-2.0
// Small files: read whole, replaced whole.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Errors name the path: kNotFound when it cannot be read, kInvalidArgument when it has more than
// `most_bytes`.
Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes);

// Replaces the file in one step, through one beside it; false when it could not be written.
bool ReplaceFile(const std::string& path, const std::string& text);

}  // namespace dynamiccl
