// SPDX-License-Identifier: Apache-2.0
// Records as compressed columns: the block of an archive. Grammar: docs/formats/trace_archive.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace_record.h"

namespace dynamiccl {

// Returns `bytes` as one zstd frame.
std::vector<std::byte> Compress(std::span<const std::byte> bytes);
// Returns the content of a frame. `wanted` is its length in bytes; a frame that states another length is an
// error before any memory is taken.
Result<std::vector<std::byte>> Decompress(std::span<const std::byte> frame, size_t wanted);

// Returns complete records (see IsWhole) as one zstd frame. The fields `checksum` and `commit` are left out,
// because they can be computed from the other fields.
std::vector<std::byte> PackRecords(std::span<const TraceRecord> records);
// Appends `count` complete records to `records`; nothing on error.
Status UnpackRecords(std::span<const std::byte> frame, size_t count, std::vector<TraceRecord>& records);

}  // namespace dynamiccl
