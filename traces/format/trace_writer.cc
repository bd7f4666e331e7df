// SPDX-License-Identifier: Apache-2.0
// A finished section is its header, one segment header and the records. The content hash is put into the
// header at the end.
#include "traces/format/trace_writer.h"

#include <cstring>

#include "src/base/byte_codec.h"
#include "traces/format/json_lines.h"
#include "traces/format/section_header.h"

namespace dynamiccl {
namespace {

void AppendSection(ByteWriter& writer, const TraceSection& section) {
  const size_t start = writer.buffer().size();
  writer.Put(HeaderOf(section, section.records.size()));
  writer.buffer().resize(start + kTraceHeaderBytes);
  const uint64_t head = section.records.size();
  writer.Put(
      SegmentHeader{.magic = kSegmentMagic, .reserved = 0, .thread_id = 0, .head = head, .inside = {}});
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
