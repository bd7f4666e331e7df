// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_files.h"

#include "traces/format/json_lines.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_json.h"
#include "traces/format/trace_merge.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {

Result<Trace> ReadTraceFiles(const std::vector<std::string>& paths, TraceReading reading) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    DYNAMICCL_TRY(const std::string content, ReadWholeFile(path));
    if (content.starts_with('{')) {
      DYNAMICCL_TRY(traces.emplace_back(), ParseTraceJson(content, path));
    } else {
      DYNAMICCL_TRY(traces.emplace_back(), ParseTrace(std::as_bytes(std::span(content)), path, reading));
    }
  }
  if (traces.size() == 1) return std::move(traces[0]);
  return MergeTraces(std::move(traces));
}

Status WriteTraceFile(const std::string& path, const Trace& trace) {
  if (path.ends_with(".ctracez")) return WriteTraceArchive(path, trace);
  if (!path.ends_with(".jsonl")) return WriteTrace(path, trace);
  DYNAMICCL_TRY(const std::string text, FormatTraceJson(trace));
  return WriteWholeFile(path, text);
}

}  // namespace dynamiccl
