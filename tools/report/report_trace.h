// SPDX-License-Identifier: Apache-2.0
// Reads a trace for a report without the records that no report shows, so that the memory is that of two
// ranks, however many ranks the trace has.
#pragma once

#include <string>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Reads a trace as ReadTrace does and checks the same. The first section has all its records. The other
// sections that the report's chart of a step shows (kShownLanes) keep their communicators and what they
// recorded of calls within the chart; further sections keep no records. A file that cannot be streamed
// (record_stream.h) is read as a whole.
Result<Trace> ReadTraceForReport(const std::string& path);

}  // namespace dynamiccl
