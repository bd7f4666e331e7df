// SPDX-License-Identifier: Apache-2.0
// The headers of a .ctrace file: one of a section (what one process recorded) and one of a segment (the ring
// of one thread). Grammar: docs/formats/trace.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "traces/format/trace_record.h"

namespace dynamiccl {

inline constexpr char kTraceMagic[8] = {'D', 'C', 'C', 'L', 'T', 'R', 'C', '\n'};
inline constexpr uint32_t kTraceVersion = 1;
inline constexpr uint32_t kTraceHeaderBytes = 4096;
inline constexpr uint32_t kSegmentMagic = 0x67657364;  // "dseg"

// The same moment on both clocks of a machine.
struct ClockAnchor {
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
};

// Bits of TraceHeader::flags.
enum TraceFlags : uint32_t {
  kTraceMirrored = 1,  // recorded on one rank only: replay issues it on every rank
  kTraceImported = 2,  // converted from another tool's file, which may not have filled every field
  kTraceFinished = 4,  // compact, with section_bytes and content_hash; without it a ring file of a recorder
};

struct TraceHeader {
  // Written once, covered by `checksum`.
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;         // offset of the first segment is first_segment
  uint32_t record_bytes;         // at least 64; readers skip what they do not know at the end of a record
  uint32_t flags;                // TraceFlags
  uint64_t first_segment;        // offset in the section
  uint64_t segment_bytes;        // distance between segments; each is a SegmentHeader, then the records
  uint64_t records_per_segment;  // capacity of a ring
  uint64_t
      table_records;  // capacity of the table of communicators, a segment right after the header; may be 0
  int32_t rank;       // of the process in its job, -1 unknown
  int32_t world;      // processes in the job, 0 unknown
  int64_t process_id;
  ClockAnchor opened;
  char host[256];     // text fields end with a zero byte
  char library[64];   // "NCCL 2.28.9"
  char writer[64];    // "dynamiccl 0.1.0"
  uint64_t checksum;  // XXH3 of all bytes before it

  // Written while recording.
  uint32_t segments;  // in use
  uint32_t closed;    // 1: the process ended in order
  uint64_t lost;      // records that found no ring
  ClockAnchor closed_at;
  uint64_t section_bytes;  // 0: the section reaches to the end of the file (still recording, or killed)
  uint64_t content_hash;   // XXH3 of bytes 480 to 519 and 528 to the section's end; finished sections only
};

// What a thread is inside of while the library has not returned, so that a hang shows it.
enum class InsideOf : uint8_t { kNothing = 0, kCall = 1, kBirth = 2 };

struct InsideMark {
  int64_t since_ns;      // CLOCK_MONOTONIC, as TraceRecord::issued_ns
  uint64_t call_number;  // these two as in the record of the call, or of the communicator that is being made
  uint64_t bytes;
  uint32_t communicator;
  int16_t root_or_peer;
  uint16_t group_size;  // calls of the group, of which the first is shown; or ranks of the communicator
  uint8_t collective;
  uint8_t data_type;
  uint8_t op;
  uint8_t what;  // InsideOf, stored last
  uint32_t reserved;
};

struct SegmentHeader {
  uint32_t magic;
  uint32_t reserved;
  int64_t thread_id;
  uint64_t head;      // records begun since the start; the ring keeps the last records_per_segment of them
  InsideMark inside;  // in the line that every record writes to anyway
};

static_assert(std::is_trivially_copyable_v<TraceHeader> && sizeof(TraceHeader) <= kTraceHeaderBytes);
static_assert(sizeof(InsideMark) == 40 && sizeof(SegmentHeader) == 64);
static_assert(offsetof(TraceHeader, host) == 88 && offsetof(TraceHeader, checksum) == 472);
static_assert(offsetof(TraceHeader, segments) == 480 && offsetof(TraceHeader, content_hash) == 520);

}  // namespace dynamiccl
