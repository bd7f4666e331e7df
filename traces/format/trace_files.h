// SPDX-License-Identifier: Apache-2.0
// Traces on disk in any of their forms, and several files as one trace: the functions with which commands
// read and write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {

// Reads binary traces, archives or JSON lines, which are recognised by their content. Several files are
// merged (see MergeTraces). If one file cannot be read, the result is its error.
Result<Trace> ReadTraceFiles(const std::vector<std::string>& paths,
                             TraceReading reading = TraceReading::kStrict);

// Writes JSON lines where the name ends in ".jsonl", an archive where it ends in ".ctracez", else the binary
// form.
Status WriteTraceFile(const std::string& path, const Trace& trace);

// The form of a copy. kByName: the file's name decides, as in WriteTraceFile.
enum class TraceForm { kArchive, kByName };

// Writes the files as one and returns the number of records. Files that can be streamed (record_stream.h) are
// never in memory as a whole. On error nothing is left at `to`.
Result<uint64_t> CopyTraceFiles(const std::vector<std::string>& from, const std::string& to, TraceForm form);

}  // namespace dynamiccl
