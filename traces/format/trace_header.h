// SPDX-License-Identifier: Apache-2.0
// The headers of a .ctrace file: one of a section (what one process recorded) and one of a segment (the ring
// of one thread). Grammar and offsets: docs/formats/trace.md. A recorder maps the file and writes these
// structs in place, so a trace can be read while the process runs and after SIGKILL.
//     section = TraceHeader (padded to 4096 bytes), table of communicators, segments
//     segment = SegmentHeader (64 bytes), records_per_segment records
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "traces/format/trace_record.h"

namespace dynamiccl {

inline constexpr char kTraceMagic[8] = {'D', 'C', 'C', 'L', 'T', 'R', 'C', '\n'};
inline constexpr uint32_t kTraceVersion = 1;
// Bytes of the padded header. This is the size of a page, so that segments begin on a page.
inline constexpr uint32_t kTraceHeaderBytes = 4096;
// A segment without this number has not been begun.
inline constexpr uint32_t kSegmentMagic = 0x67657364;

// One moment as read on both clocks of a machine.
struct ClockAnchor {
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
};

// Bits of TraceHeader::flags. kTraceMirrored: recorded on one rank only; replay issues the calls on every
// rank. kTraceImported: converted from another tool's file, which may not have filled every field.
// kTraceFinished: a compact section with section_bytes and content_hash; without this bit, the section is a
// recorder's ring file. kTraceGroupsUnknown: the imported file does not state how many ranks some
// communicators have. Such communicators have 1 rank in the section. kTraceOrderOnly: the times of issue were
// not measured and only give the order of the records. Durations may have been measured. The bits from
// kTraceEndShift on tell how the process ended (ProcessEnd in trace.h).
enum TraceFlags : uint32_t {
  kTraceMirrored = 1,
  kTraceImported = 2,
  kTraceFinished = 4,
  kTraceOrderOnly = 8,
  kTraceGroupsUnknown = 16,
};
inline constexpr int kTraceEndShift = 8;

// The header of a section, with a member for each field of the format. The first part never changes once it
// is written; the second part changes while the process records.
struct TraceHeader {
  // Written once, and covered by `checksum`.
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // offset of the table of communicators
  // Bytes of a record, at least 64. Of a longer record, a reader ignores the bytes that it does not know.
  uint32_t record_bytes;
  uint32_t flags;          // TraceFlags
  uint64_t first_segment;  // offset in the section
  // Distance between two segments in bytes. A segment is a SegmentHeader, then its records.
  uint64_t segment_bytes;
  uint64_t records_per_segment;  // capacity of each ring
  // Capacity of the table of communicators, a segment right after the header; may be 0.
  uint64_t table_records;
  int32_t rank;   // rank of the process in its job; -1: unknown
  int32_t world;  // processes in the job; 0: unknown
  int64_t process_id;
  ClockAnchor opened;
  char host[256];     // text fields end with a zero byte
  char library[64];   // "NCCL 2.28.9", or "hostccl 2.28.9": the release as which it behaves
  char writer[64];    // "dynamiccl 0.1.0"
  uint64_t checksum;  // XXH3 of all bytes before it

  // Written while recording: the number of segments in use.
  uint32_t segments;
  uint32_t closed;  // 1: the process ended in order
  // Records for which there was no ring; in a finished section, all that are missing.
  uint64_t lost;
  ClockAnchor closed_at;
  // Length of the section in bytes. 0: the section reaches to the end of the file, because its process still
  // records or was killed.
  uint64_t section_bytes;
  // XXH3 of bytes 480 to 519 and 528 to the section's end; finished sections only.
  uint64_t content_hash;
  // The part of `lost` that newer records replaced; finished sections only. Earlier writers left it 0.
  uint64_t replaced;
};

// Says what a thread was doing inside the library when its mark was read. After a hang the mark is still in
// the file.
enum class InsideOf : uint8_t { kNothing = 0, kCall = 1, kInit = 2 };

// The mark of one thread.
struct InsideMark {
  int64_t since_ns;  // CLOCK_MONOTONIC, as TraceRecord::issued_ns
  // call_number and bytes are those of the call's record, or of the record of the communicator that is being
  // created.
  uint64_t call_number;
  uint64_t bytes;
  uint32_t communicator;
  int16_t root_or_peer;
  // Number of calls in the group, of which the first is shown; for an init, number of ranks of the
  // communicator.
  uint16_t group_size;
  uint8_t collective;
  uint8_t data_type;
  uint8_t op;
  uint8_t what;  // InsideOf; stored last
  uint32_t reserved;
};

// The header of a segment. Only the segment's thread writes it while recording.
struct SegmentHeader {
  uint32_t magic;
  uint32_t reserved;
  int64_t thread_id;
  // Number of records that the thread has begun to write. The ring keeps the last records_per_segment of
  // them.
  uint64_t head;
  // The mark lies in the cache line to which every record writes anyway.
  InsideMark inside;
};

static_assert(std::is_trivially_copyable_v<TraceHeader> && sizeof(TraceHeader) <= kTraceHeaderBytes);
static_assert(sizeof(InsideMark) == 40 && sizeof(SegmentHeader) == 64);
static_assert(offsetof(TraceHeader, host) == 88 && offsetof(TraceHeader, checksum) == 472);
static_assert(offsetof(TraceHeader, segments) == 480 && offsetof(TraceHeader, content_hash) == 520);
static_assert(offsetof(TraceHeader, replaced) == 528);

}  // namespace dynamiccl
