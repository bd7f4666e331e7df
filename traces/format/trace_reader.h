// SPDX-License-Identifier: Apache-2.0
// Reads .ctrace files: those of a running or killed process, finished ones, and files merged from several
// ranks. Reads archives as well.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// Selects how a reader treats damage.
enum class TraceReading {
  // A file that is cut short, or whose content hash is wrong, is an error.
  kStrict,
  // Everything that is complete is read, from any file whose first header is readable.
  kSalvage,
};

// Reads a file. Torn and replaced records in a recorder's file are not an error: they are counted in
// TraceSection::lost. Records that are longer than this build's are cut to the known part. Errors read
// "<path>: byte <offset>: <what>".
Result<Trace> ReadTrace(const std::string& path, TraceReading reading = TraceReading::kStrict);
// Reads the last `newest` records of each thread of a recorder's file, and all communicators, with
// TraceReading::kSalvage. Older records count as lost and are not read from disk. Finished files are read
// completely.
Result<Trace> ReadTraceTail(const std::string& path, uint64_t newest);
// Reads a trace as ReadTrace does, from bytes in memory. Errors contain `name`.
Result<Trace> ParseTrace(std::span<const std::byte> bytes, const std::string& name, TraceReading reading);

}  // namespace dynamiccl
