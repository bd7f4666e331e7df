// SPDX-License-Identifier: Apache-2.0
// Records as compressed columns: the block of an archive. Grammar: docs/formats/trace_archive.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "traces/format/trace_record.h"

namespace dynamiccl {

// One zstd frame of `bytes`.
std::vector<std::byte> Compress(std::span<const std::byte> bytes);
// `wanted` is how long the result must be; a frame that says another length is an error before memory is
// taken.
Result<std::vector<std::byte>> Decompress(std::span<const std::byte> frame, size_t wanted);

// Whole records (see IsWhole) as one zstd frame. Checksum and commit follow from the rest and are left out.
std::vector<std::byte> PackRecords(std::span<const TraceRecord> records);
// Appends `count` whole records to `records`; nothing on error.
Status UnpackRecords(std::span<const std::byte> frame, size_t count, std::vector<TraceRecord>& records);

}  // namespace dynamiccl
