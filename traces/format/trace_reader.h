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

enum class TraceReading {
  kStrict,   // a file that is cut short or whose content hash is wrong is an error
  kSalvage,  // everything that is whole is taken, from any file whose first header is readable
};

// Torn, damaged and overwritten records are never an error: they are counted in TraceSection::lost. Records
// longer than ours are cut to what we know. Errors read "<path>: byte <offset>: <what>".
Result<Trace> ReadTrace(const std::string& path, TraceReading reading = TraceReading::kStrict);
// Of a recorder's file the last `newest` records of each thread, and all communicators; what is older counts
// as lost and is not read from the disk. Finished files are read whole. As kSalvage.
Result<Trace> ReadTraceTail(const std::string& path, uint64_t newest);
Result<Trace> ParseTrace(std::span<const std::byte> bytes, const std::string& name, TraceReading reading);

}  // namespace dynamiccl
