// SPDX-License-Identifier: Apache-2.0
// Streams a recorder's file, whose threads wrote their records into rings (trace_header.h). Private to
// traces/format.
#pragma once

#include "src/base/status.h"
#include "traces/format/byte_source.h"
#include "traces/format/record_stream.h"
#include "traces/format/trace_header.h"

namespace dynamiccl {

// Passes the section that fills `bytes` on to `sink`, with the records that ReadTrace reads, in the same
// order. `header` is the section's header, which CheckHeader has accepted. Nobody may write the file
// meanwhile. Takes 12 MiB of memory, whatever the length of the rings. kUnsupported: a ring's records are too
// far from the order of issue for that memory, or longer than those of this build. kCorrupt: the file is cut.
Status StreamRings(ByteSource& bytes, const TraceHeader& header, RecordSink& sink);

}  // namespace dynamiccl
