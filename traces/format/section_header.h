// SPDX-License-Identifier: Apache-2.0
// A section's description as the header that stands before its records on disk, and back.
#pragma once

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Hint for errors about a file that is not one of our traces.
inline constexpr const char* kHintForOtherFiles =
    "a file of another tool: `dynamiccl why FILE` shows it, `dynamiccl trace import FILE -o job.ctrace` "
    "makes "
    "a trace of it";

// The header of the finished section with `records` records, complete except for content_hash. Texts that are
// too long are cut.
TraceHeader HeaderOf(const TraceSection& section, uint64_t records);
// The error about a file that ends before a header is complete. `bytes` is the file's size.
Error EndsInHeader(size_t bytes);
// Returns kCorrupt, with the byte in the section, if magic, version or checksum is not that of a section.
Status CheckHeader(const TraceHeader& header);
// Bounds each size in a header, so that sums and products of sizes cannot wrap. Returns kCorrupt as
// CheckHeader does.
Status CheckLayout(const TraceHeader& header);
// The number of bytes that a section needs for all parts that its header states.
uint64_t StatedEnd(const TraceHeader& header);
// Returns the section without its records. `header` may hold any bytes; nothing outside of it is read.
TraceSection SectionOf(const TraceHeader& header);

}  // namespace dynamiccl
