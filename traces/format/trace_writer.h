// SPDX-License-Identifier: Apache-2.0
// Writes finished .ctrace files: one compact section per process, each with a hash of its content.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Returns the bytes of a file. Text fields that are too long for the header are cut. Otherwise reading the
// result gives an equal trace.
std::vector<std::byte> FormatTrace(const Trace& trace);
Status WriteTrace(const std::string& path, const Trace& trace);

}  // namespace dynamiccl
