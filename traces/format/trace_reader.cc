// SPDX-License-Identifier: Apache-2.0
// Every offset comes from the file, so it is checked against the file's length before use: a damaged header
// must give an error, never a read outside the file.
#include "traces/format/trace_reader.h"

#include <algorithm>
#include <cstring>

#include "src/base/counted.h"
#include "src/base/mapped_file.h"
#include "traces/format/json_lines.h"
#include "traces/format/record_views.h"
#include "traces/format/section_header.h"
#include "traces/format/trace_archive.h"

namespace dynamiccl {
namespace {

// Reads one section: its header, then its segments.
class SectionParser {
 public:
  // At most `newest` records of each ring are read: the newest ones.
  SectionParser(std::span<const std::byte> bytes, size_t offset, TraceReading reading, uint64_t newest)
      : bytes_(bytes.subspan(offset)), strict_(reading == TraceReading::kStrict), newest_(newest) {}

  // Reads the section; call this once.
  Status Run() {
    DYNAMICCL_CHECK_OK(ReadHeader());
    section_ = SectionOf(header_);
    if (const Status whole = CheckSize(); !whole) {
      if (strict_) return whole;
      damage_ = whole.error().message;
    }
    if (header_.table_records > 0)
      ReadSegment(header_.header_bytes, header_.table_records, header_.table_records);
    // A finished section has its communicators among the records, so all are needed.
    const uint64_t newest = finished() ? UINT64_MAX : newest_;
    for (uint32_t i = 0; i < header_.segments; ++i) {
      ReadSegment(header_.first_segment + i * header_.segment_bytes, header_.records_per_segment, newest);
    }
    // The sort is stable, so records with the same time keep the order of their ring. Communicators were read
    // first and therefore stay before the calls on them.
    std::stable_sort(section_.records.begin(), section_.records.end(),
                     [](const TraceRecord& a, const TraceRecord& b) { return a.issued_ns < b.issued_ns; });
    return {};
  }

  TraceSection& section() { return section_; }
  // In salvage, describes what is wrong with the section; empty if it is whole.
  const std::string& damage() const { return damage_; }
  // Number of bytes up to the next section. It is at least the length of the header, so that a damaged length
  // cannot make the reader loop forever.
  size_t length() const {
    if (!finished()) return bytes_.size();
    return std::clamp<size_t>(header_.section_bytes, std::min<size_t>(kTraceHeaderBytes, bytes_.size()),
                              bytes_.size());
  }

 private:
  bool finished() const { return (header_.flags & kTraceFinished) != 0; }

  Status Fail(size_t offset, const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "byte {}: {}", offset, what);
  }

  Status ReadHeader() {
    const size_t compared = std::min(bytes_.size(), sizeof(kTraceMagic));
    const bool is_trace = compared == 0 || std::memcmp(bytes_.data(), kTraceMagic, compared) == 0;
    if (is_trace && bytes_.size() < kTraceHeaderBytes) return tl::unexpected(EndsInHeader(bytes_.size()));
    if (compared > 0) std::memcpy(&header_, bytes_.data(), std::min(bytes_.size(), sizeof(header_)));
    DYNAMICCL_CHECK_OK(CheckHeader(header_));
    return CheckLayout(header_);
  }

  // The section must lie inside the file and have the right content hash.
  Status CheckSize() const {
    const uint64_t end = header_.first_segment + header_.segments * header_.segment_bytes;
    const uint64_t wanted = StatedEnd(header_);
    if (wanted > bytes_.size()) {
      return Fail(bytes_.size(),
                  fmt::format("the file ends, but the section should reach to byte {}", wanted));
    }
    if (!finished()) return {};
    if (end > header_.section_bytes || header_.section_bytes < header_.header_bytes) {
      return Fail(offsetof(TraceHeader, section_bytes), "the section's length contradicts its segments");
    }
    if (ContentHash(bytes_.first(header_.section_bytes)) != header_.content_hash) {
      return Fail(header_.header_bytes, "the records are damaged (content hash)");
    }
    return {};
  }

  // Takes the complete records of the ring at `offset`; the others count as lost.
  void ReadSegment(uint64_t offset, uint64_t capacity, uint64_t newest) {
    SegmentHeader segment;
    if (offset + sizeof(segment) > bytes_.size()) return;
    std::memcpy(&segment, bytes_.data() + offset, sizeof(segment));
    if (segment.magic != kSegmentMagic || capacity == 0) return;
    const uint64_t count = std::min({segment.head, capacity, newest});
    section_.lost += segment.head - count;
    section_.replaced += segment.head - std::min(segment.head, capacity);
    for (uint64_t position = segment.head - count; position < segment.head; ++position) {
      const uint64_t start = offset + sizeof(segment) + position % capacity * header_.record_bytes;
      TraceRecord record;
      if (start + sizeof(record) <= bytes_.size()) {
        std::memcpy(&record, bytes_.data() + start, sizeof(record));
        if (IsWhole(record)) {
          section_.records.push_back(record);
          continue;
        }
      }
      ++section_.lost;
    }
    ReadMark(segment.inside);
  }

  // Creates a record from a thread's mark. A finished section contains such marks as records already.
  void ReadMark(const InsideMark& mark) {
    if (finished() || mark.what == static_cast<uint8_t>(InsideOf::kNothing) ||
        mark.what > static_cast<uint8_t>(InsideOf::kInit))
      return;
    section_.records.push_back(InsideRecord(mark));
    Seal(section_.records.back());
  }

  std::span<const std::byte> bytes_;
  bool strict_;
  uint64_t newest_;
  TraceHeader header_{};
  TraceSection section_;
  std::string damage_;
};

// Returns "run.ctrace", or "run.ctrace: section at byte 4096" for a later section.
std::string PlaceOf(const std::string& name, size_t offset) {
  return offset == 0 ? name : fmt::format("{}: section at byte {}", name, offset);
}

// Reads section after section until the end of the bytes.
Result<Trace> ParseSections(std::span<const std::byte> bytes, const std::string& name, TraceReading reading,
                            uint64_t newest) {
  Trace trace;
  size_t offset = 0;
  do {
    SectionParser parser(bytes, offset, reading, newest);
    if (const Status status = parser.Run(); !status) {
      auto error = Wrap(status.error(), PlaceOf(name, offset));
      // A later section without a readable header costs only itself and what follows it.
      if (reading == TraceReading::kSalvage && offset > 0) {
        trace.damage.push_back(error.value().message + "; it is not read, nor what follows it");
        break;
      }
      const bool foreign = offset == 0 && !status.error().hint.empty();
      const bool cut = !foreign && (offset > 0 || bytes.size() >= kTraceHeaderBytes);
      return cut ? WithHint(std::move(error), "`dynamiccl trace recover` takes what is whole") : error;
    }
    if (!parser.damage().empty())
      trace.damage.push_back(fmt::format(
          "{}: {}; lost of rank {}: {}", PlaceOf(name, offset), parser.damage(), parser.section().rank,
          Counted(parser.section().lost - parser.section().replaced, "record")));
    trace.sections.push_back(std::move(parser.section()));
    offset += parser.length();
  } while (offset < bytes.size());
  return trace;
}

}  // namespace

Result<Trace> ParseTrace(std::span<const std::byte> bytes, const std::string& name, TraceReading reading) {
  if (IsTraceArchive(bytes)) return ParseTraceArchive(bytes, name, reading);
  return ParseSections(bytes, name, reading, UINT64_MAX);
}

Result<Trace> ReadTraceTail(const std::string& path, uint64_t newest) {
  DYNAMICCL_TRY(const MappedFile file, MappedFile::Open(path));
  return ParseSections(file.bytes(), path, TraceReading::kSalvage, newest);
}

Result<Trace> ReadTrace(const std::string& path, TraceReading reading) {
  DYNAMICCL_TRY(const std::string content, ReadWholeFile(path));
  return ParseTrace(std::as_bytes(std::span(content)), path, reading);
}

}  // namespace dynamiccl
