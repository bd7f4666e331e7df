// SPDX-License-Identifier: Apache-2.0
// Reads .ctrace files, of a running or killed process, finished, or merged from several ranks, and archives
// of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/status.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// What a reader does with damage.
enum class TraceReading {
  // A file that is cut short, or whose content hash is wrong, is an error.
  kStrict,
  // Everything that is complete is taken, from any file whose first header is readable.
  kSalvage,
};

// Reads a file. Torn and overwritten records of a recorder's file are never an error: they are counted in
// TraceSection::lost. Records longer than ours are cut to what we know. Errors read "<path>: byte <offset>:
// <what>".
Result<Trace> ReadTrace(const std::string& path, TraceReading reading = TraceReading::kStrict);
// Reads the last `newest` records of each thread of a recorder's file, and all communicators, as kSalvage.
// Older records count as lost and are not read from the disk. Finished files are read completely.
Result<Trace> ReadTraceTail(const std::string& path, uint64_t newest);
// The same as ReadTrace for bytes in memory; `name` stands in errors.
Result<Trace> ParseTrace(std::span<const std::byte> bytes, const std::string& name, TraceReading reading);

}  // namespace dynamiccl
