// SPDX-License-Identifier: Apache-2.0
// Streams a recorder's file, whose threads wrote their records into rings (trace_header.h). Private to
// traces/format.
#pragma once

#include "src/base/status.h"
#include "traces/format/byte_source.h"
#include "traces/format/record_stream.h"
#include "traces/format/trace_header.h"

namespace dynamiccl {

// Passes the section that reaches from the beginning of `bytes` to their end, with the records that ReadTrace
// reads, in the same order. `header` is the section's, and CheckHeader accepts it. Nobody may write the file
// meanwhile. Memory is 12 MiB, whatever the length of the rings. kUnsupported: a ring's records are farther
// from the order of issue than that memory holds, or longer than this build's. kCorrupt: the file is cut.
Status StreamRings(ByteSource& bytes, const TraceHeader& header, RecordSink& sink);

}  // namespace dynamiccl
