// SPDX-License-Identifier: Apache-2.0
#include "traces/format/section_header.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace dynamiccl {
namespace {

template <size_t N>
void CopyText(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

template <size_t N>
std::string TextOf(const char (&field)[N]) {
  return std::string(field, ::strnlen(field, N));
}

}  // namespace

TraceHeader HeaderOf(const TraceSection& section) {
  TraceHeader header{};
  std::memcpy(header.magic, kTraceMagic, sizeof(kTraceMagic));
  header.version = kTraceVersion;
  header.header_bytes = kTraceHeaderBytes;
  header.record_bytes = sizeof(TraceRecord);
  header.flags = section.flags | kTraceFinished;
  header.first_segment = kTraceHeaderBytes;
  header.records_per_segment = section.records.size();
  header.segment_bytes = sizeof(SegmentHeader) + section.records.size() * sizeof(TraceRecord);
  header.rank = section.rank;
  header.world = section.world;
  header.process_id = section.process_id;
  header.opened = section.opened;
  CopyText(header.host, section.host);
  CopyText(header.library, section.library);
  CopyText(header.writer, section.writer);
  header.checksum = XXH3_64bits(&header, offsetof(TraceHeader, checksum));
  header.segments = 1;
  header.closed = section.closed ? 1 : 0;
  header.lost = section.lost;
  header.closed_at = section.closed_at;
  header.section_bytes = kTraceHeaderBytes + header.segment_bytes;
  return header;
}

TraceSection SectionOf(const TraceHeader& header) {
  TraceSection section;
  section.rank = header.rank;
  section.world = header.world;
  section.process_id = header.process_id;
  section.flags = header.flags & ~static_cast<uint32_t>(kTraceFinished);
  section.host = TextOf(header.host);
  section.library = TextOf(header.library);
  section.writer = TextOf(header.writer);
  section.opened = header.opened;
  section.closed_at = header.closed_at;
  section.closed = header.closed != 0;
  section.lost = header.lost;
  return section;
}

}  // namespace dynamiccl
