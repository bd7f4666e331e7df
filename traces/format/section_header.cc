// SPDX-License-Identifier: Apache-2.0
// Fields are copied one by one; texts end with a zero byte within their field.
#include "traces/format/section_header.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace dynamiccl {
namespace {

// Limits for header fields, far above the recorder's own limit on segments.
constexpr uint32_t kMaxSegments = 4096;
// Limit on the length of a record. Later versions may lengthen records, but not arbitrarily.
constexpr uint32_t kMaxRecordBytes = 4096;
// Limit on the bytes of any part, so that products and sums of header fields cannot wrap.
constexpr uint64_t kMaxSize = 1ull << 48;

tl::unexpected<Error> Fail(size_t offset, const std::string& what) {
  return MakeError(ErrorKind::kCorrupt, "byte {}: {}", offset, what);
}

// Copies the text, cut to leave room for the zero byte.
template <size_t N>
void CopyText(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

template <size_t N>
std::string TextOf(const char (&field)[N]) {
  return std::string(field, ::strnlen(field, N));
}

}  // namespace

TraceHeader HeaderOf(const TraceSection& section, uint64_t records) {
  TraceHeader header{};
  std::memcpy(header.magic, kTraceMagic, sizeof(kTraceMagic));
  header.version = kTraceVersion;
  header.header_bytes = kTraceHeaderBytes;
  header.record_bytes = sizeof(TraceRecord);
  header.flags = section.flags | kTraceFinished;
  header.first_segment = kTraceHeaderBytes;
  header.records_per_segment = records;
  header.segment_bytes = sizeof(SegmentHeader) + records * sizeof(TraceRecord);
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
  header.replaced = section.replaced;
  header.closed_at = section.closed_at;
  header.section_bytes = kTraceHeaderBytes + header.segment_bytes;
  return header;
}

Error EndsInHeader(size_t bytes) {
  if (bytes > 0)
    return {ErrorKind::kCorrupt, fmt::format("byte {}: the file ends inside a header", bytes), ""};
  return {ErrorKind::kCorrupt, "byte 0: the file is empty",
          "a process that was killed early, or still runs, may have written nothing yet"};
}

Status CheckHeader(const TraceHeader& header) {
  if (std::memcmp(header.magic, kTraceMagic, sizeof(kTraceMagic)) != 0)
    return WithHint(Fail(0, "not a trace (.ctrace)"), kHintForOtherFiles);
  if (header.version != kTraceVersion)
    return Fail(8, fmt::format("version {}, this build reads {}", header.version, kTraceVersion));
  if (header.checksum != XXH3_64bits(&header, offsetof(TraceHeader, checksum)))
    return Fail(offsetof(TraceHeader, checksum), "the header is damaged");
  return {};
}

Status CheckLayout(const TraceHeader& header) {
  const bool sane = header.header_bytes >= kTraceHeaderBytes && header.header_bytes <= 1u << 20 &&
                    header.record_bytes >= sizeof(TraceRecord) && header.record_bytes <= kMaxRecordBytes &&
                    header.segments <= kMaxSegments && header.segment_bytes <= kMaxSize / kMaxSegments &&
                    header.first_segment <= kMaxSize &&
                    header.records_per_segment <= kMaxSize / kMaxRecordBytes &&
                    header.table_records <= kMaxSize / kMaxRecordBytes;
  if (!sane) return Fail(12, "the header's sizes make no sense");
  const uint64_t ring = sizeof(SegmentHeader) + header.records_per_segment * header.record_bytes;
  if (header.segments > 0 && ring > header.segment_bytes) return Fail(24, "the header's sizes make no sense");
  return {};
}

uint64_t StatedEnd(const TraceHeader& header) {
  const uint64_t table = header.table_records == 0 ? 0
                                                   : header.header_bytes + sizeof(SegmentHeader) +
                                                         header.table_records * header.record_bytes;
  return std::max(
      {header.first_segment + header.segments * header.segment_bytes, header.section_bytes, table});
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
  section.replaced = std::min(header.replaced, header.lost);
  return section;
}

}  // namespace dynamiccl
