// SPDX-License-Identifier: Apache-2.0
// Reads the traces from which a command makes its result.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Reads traces as ReadTraceFiles does, and warns on standard error if records are missing.
Result<Trace> ReadGivenTraces(const std::vector<std::string>& paths);

}  // namespace dynamiccl
