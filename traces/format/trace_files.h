// SPDX-License-Identifier: Apache-2.0
// Traces on disk in any of their forms, several files as one trace: what commands read and write.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {

// Binary, archive or JSON lines, told apart by content. Several files are merged (see MergeTraces).
Result<Trace> ReadTraceFiles(const std::vector<std::string>& paths,
                             TraceReading reading = TraceReading::kStrict);

// JSON lines where the name ends in ".jsonl", an archive where it ends in ".ctracez", else binary.
Status WriteTraceFile(const std::string& path, const Trace& trace);

}  // namespace dynamiccl
