// SPDX-License-Identifier: Apache-2.0
// Traces as streams, for those that do not fit in memory: sections and blocks of records one after the other,
// from a finished .ctrace file or an archive into either. Reading and writing need kStreamMemory at most,
// whatever the length of the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// A block of records (4 MiB) in both forms, its compressed form, and zstd's tables.
inline constexpr size_t kStreamMemory = size_t{48} << 20;

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // The section's description, without records, and how many of them follow.
  virtual Status BeginSection(const TraceSection& description, uint64_t records) = 0;
  // At most kArchiveBlockRecords at a time. Only whole records (IsWhole).
  virtual Status Take(std::span<const TraceRecord> records) = 0;
  // `missing` of the records that were told have not come: never but in salvage.
  virtual Status EndSection(uint64_t missing) = 0;
};

// A sink that writes a file. What is not finished when the object goes is no trace: its end is missing.
class RecordWriter : public RecordSink {
 public:
  virtual Status Finish() = 0;
};
Result<std::unique_ptr<RecordWriter>> CreateArchive(const std::string& path);
Result<std::unique_ptr<RecordWriter>> CreateTrace(const std::string& path);

// Passes an archive, or a finished .ctrace file, on to `sink` and checks all that ReadTrace checks strictly;
// what was passed before an error is no trace. kUnsupported: a file of a recorder that has not finished,
// JSON lines, records out of order; ReadTraceFiles reads those.
Status StreamTrace(const std::string& path, RecordSink& sink);

}  // namespace dynamiccl
