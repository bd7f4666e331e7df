// SPDX-License-Identifier: Apache-2.0
// Traces as streams, for traces that do not fit in memory: sections and blocks of records one after the
// other, from a .ctrace file or an archive into a finished file of either form. Reading and writing take
// kStreamMemory at most, whatever the length of the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Bytes of memory that a stream takes: a block of records (4 MiB) in both forms, its compressed form, and
// zstd's tables.
inline constexpr size_t kStreamMemory = size_t{48} << 20;

// Receives a trace piece by piece on one thread: BeginSection, any number of Take, EndSection, and the same
// for each further section. An error ends the stream, and what was received before is not a complete trace.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // `description` is the section without records; `records` is the number of records that will follow.
  virtual Status BeginSection(const TraceSection& description, uint64_t records) = 0;
  // Receives at most kArchiveBlockRecords records, all of them complete (IsWhole).
  virtual Status Take(std::span<const TraceRecord> records) = 0;
  // `missing` is the number of announced records that did not come. It is above 0 only in salvage.
  virtual Status EndSection(uint64_t missing) = 0;
};

// A sink that writes a file. Without a call of Finish the file has no end and cannot be read as a trace.
class RecordWriter : public RecordSink {
 public:
  // Completes the file.
  virtual Status Finish() = 0;
};
// Both create a file, or overwrite an existing one: an archive or a .ctrace file.
Result<std::unique_ptr<RecordWriter>> CreateArchive(const std::string& path);
Result<std::unique_ptr<RecordWriter>> CreateTrace(const std::string& path);

// Passes the sections of a file on to `sink`. The file may be an archive, a finished .ctrace file, or a
// recorder's file that no process writes any more. Makes all checks that the strict ReadTrace makes.
// kUnsupported: a recorder's file that may still be written, JSON lines, or records out of order;
// ReadTraceFiles reads those.
Status StreamTrace(const std::string& path, RecordSink& sink);

}  // namespace dynamiccl
