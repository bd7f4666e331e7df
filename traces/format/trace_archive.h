// SPDX-License-Identifier: Apache-2.0
// Archives of traces (.ctracez): the same sections and records in compressed blocks, each with checksums, so
// that damage costs one block. Grammar: docs/formats/trace_archive.md.
//     ArchiveHeader, then for each section: a kSection block, kRecords blocks; at the end a kEnd block
#pragma once

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>

#include "traces/format/trace_reader.h"

namespace dynamiccl {

inline constexpr char kArchiveMagic[8] = {'D', 'C', 'C', 'L', 'A', 'R', 'C', '\n'};
inline constexpr uint32_t kArchiveVersion = 1;
// Maximum number of records in a block. Reading and writing need their 4 MiB in addition to the trace itself.
inline constexpr uint32_t kArchiveBlockRecords = 65536;

enum class ArchiveBlockKind : uint32_t { kSection = 1, kRecords = 2, kEnd = 3 };

// The first bytes of an archive.
struct ArchiveHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t checksum;  // XXH3 of the bytes before it
};

// The bytes before the payload of a block.
struct ArchiveBlockHeader {
  uint32_t magic;
  uint32_t kind;     // ArchiveBlockKind
  uint32_t section;  // index from 0; in the end block, the number of sections
  uint32_t records;  // number of records in this block
  // Index of the block's first record in its section; in the end block, the number of records of all
  // sections.
  uint64_t first_record;
  uint64_t payload_bytes;
  uint64_t payload_hash;  // XXH3 of the payload
  uint64_t checksum;      // XXH3 of the bytes before it
};
inline constexpr uint32_t kArchiveBlockMagic = 0x6b6c6264;  // "dblk"

static_assert(sizeof(ArchiveHeader) == 24 && sizeof(ArchiveBlockHeader) == 48);

// True if the first bytes of a file are those of an archive.
bool IsTraceArchive(std::span<const std::byte> head);

class ByteSource;
class RecordSink;

// Writes block by block. Texts of a section that are too long for TraceHeader are cut.
void AppendTraceArchive(std::ostream& stream, const Trace& trace);
Status WriteTraceArchive(const std::string& path, const Trace& trace);

// Strict: any damage is an error, which reads "<name>: block at byte <offset>: <what>". Salvage: the records
// of damaged or missing blocks count as lost. Records of a section whose description is missing are put into
// a section of rank -1.
Result<Trace> ParseTraceArchive(std::span<const std::byte> bytes, const std::string& name,
                                TraceReading reading);
// Passes the blocks of an archive to `sink`, one at a time and strictly (record_stream.h).
Status StreamTraceArchive(ByteSource& bytes, const std::string& name, RecordSink& sink);

}  // namespace dynamiccl
