// SPDX-License-Identifier: Apache-2.0
// Traces on disk in any of their forms, several files as one trace: what commands read and write.
#pragma once

#include <cstdint>
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

enum class TraceForm { kArchive, kByName };

// The files as one: an archive, or what WriteTraceFile makes of the name. A single finished binary trace or
// archive is never in memory as a whole (record_stream.h). Returns how many records. On error nothing is left
// at `to`.
Result<uint64_t> CopyTraceFiles(const std::vector<std::string>& from, const std::string& to, TraceForm form);

}  // namespace dynamiccl
