// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "src/base/byte_codec.h"
#include "traces/format/json_lines.h"

namespace dynamiccl {
namespace {

template <size_t N>
void CopyText(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

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

void AppendSection(ByteWriter& writer, const TraceSection& section) {
  const size_t start = writer.buffer().size();
  writer.Put(HeaderOf(section));
  writer.buffer().resize(start + kTraceHeaderBytes);
  const uint64_t head = section.records.size();
  writer.Put(
      SegmentHeader{.magic = kSegmentMagic, .reserved = 0, .thread_id = 0, .head = head, .padding = {}});
  writer.PutBytes(std::as_bytes(std::span(section.records)));
  const uint64_t hash = ContentHash(std::span(writer.buffer()).subspan(start));
  std::memcpy(writer.buffer().data() + start + offsetof(TraceHeader, content_hash), &hash, sizeof(hash));
}

}  // namespace

std::vector<std::byte> FormatTrace(const Trace& trace) {
  ByteWriter writer;
  for (const TraceSection& section : trace.sections) AppendSection(writer, section);
  return std::move(writer.buffer());
}

Status WriteTrace(const std::string& path, const Trace& trace) {
  const std::vector<std::byte> bytes = FormatTrace(trace);
  return WriteWholeFile(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace dynamiccl
