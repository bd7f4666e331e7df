// SPDX-License-Identifier: Apache-2.0
// Reads and writes .ctrace sections with only one block in memory. The content hash covers bytes both before
// and after the place where it is stored. The hash is therefore updated while the bytes pass, and written or
// compared at the end of the section.
#include "traces/format/record_stream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "src/base/own_file.h"
#include "traces/format/byte_source.h"
#include "traces/format/ring_stream.h"
#include "traces/format/section_header.h"
#include "traces/format/trace_archive.h"

namespace dynamiccl {
namespace {

// Offsets between which the content hash covers the header, see TraceHeader::content_hash.
constexpr size_t kBefore = offsetof(TraceHeader, segments);
constexpr size_t kHash = offsetof(TraceHeader, content_hash);

// Computes TraceHeader::content_hash of a section that is read or written in pieces.
class RunningHash {
 public:
  // Begins with the bytes between the header's checksum and the first record.
  void Begin(std::span<const std::byte> header, std::span<const std::byte> segment) {
    XXH3_64bits_reset(&state_);
    Update(header.subspan(kBefore, kHash - kBefore));
    Update(header.subspan(kHash + sizeof(uint64_t)));
    Update(segment);
  }
  void Update(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

// A section's header as it is stored on disk, padded with zeros.
std::vector<std::byte> PaddedHeader(const TraceHeader& header) {
  std::vector<std::byte> bytes(kTraceHeaderBytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

// Writes a .ctrace file: for each section a header and one segment.
class TraceFile final : public RecordWriter {
 public:
  explicit TraceFile(const std::string& path)
      : path_(path), stream_(path, std::ios::binary | std::ios::trunc) {}

  // The hash stands in the file before the bytes that it covers. So it is written when the section ends.
  Status BeginSection(const TraceSection& description, uint64_t records) override {
    start_ = stream_.tellp();
    const std::vector<std::byte> header = PaddedHeader(HeaderOf(description, records));
    const SegmentHeader segment{
        .magic = kSegmentMagic, .reserved = 0, .thread_id = 0, .head = records, .inside = {}};
    const auto segment_bytes = std::as_bytes(std::span(&segment, 1));
    hash_.Begin(header, segment_bytes);
    Put(header);
    return Put(segment_bytes);
  }
  Status Take(std::span<const TraceRecord> records) override {
    hash_.Update(std::as_bytes(records));
    return Put(std::as_bytes(records));
  }
  Status EndSection(uint64_t missing) override {
    if (missing > 0) return MakeError(ErrorKind::kInternal, "{}: {} records have not come", path_, missing);
    const uint64_t hash = hash_.value();
    stream_.seekp(start_ + static_cast<std::streamoff>(kHash));
    Put(std::as_bytes(std::span(&hash, 1)));
    stream_.seekp(0, std::ios::end);
    return Written();
  }
  Status Finish() override {
    stream_.close();
    return Written();
  }

 private:
  Status Put(std::span<const std::byte> bytes) {
    stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return Written();
  }
  // Returns an error if any write has failed, for example because the disk is full.
  Status Written() const {
    if (stream_) return {};
    return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path_, ErrnoText(errno));
  }

  std::string path_;
  std::ofstream stream_;
  // Position of the section in the file.
  std::streampos start_;
  RunningHash hash_;
};

// True for a finished section as this build writes it: one segment of records in order, without a table.
bool IsStreamable(const TraceHeader& header) {
  return (header.flags & kTraceFinished) != 0 && header.header_bytes == kTraceHeaderBytes &&
         header.first_segment == kTraceHeaderBytes && header.record_bytes == sizeof(TraceRecord) &&
         header.segments == 1 && header.table_records == 0 &&
         header.records_per_segment < (uint64_t{1} << 48) / sizeof(TraceRecord) &&
         header.segment_bytes == sizeof(SegmentHeader) + header.records_per_segment * sizeof(TraceRecord) &&
         header.section_bytes == kTraceHeaderBytes + header.segment_bytes;
}

// Reads the sections of a .ctrace file one after the other.
class SectionStream {
 public:
  SectionStream(ByteSource& bytes, RecordSink& sink) : bytes_(bytes), sink_(sink) {}

  Status Run(const std::string& path) {
    DYNAMICCL_TRY(const TraceHeader first, HeaderAt(0));
    if ((first.flags & kTraceFinished) == 0) {
      if (IsClaimed(path))
        return MakeError(ErrorKind::kUnsupported, "a process still writes the file, or may do so");
      return StreamRings(bytes_, first, sink_);
    }
    do {
      DYNAMICCL_CHECK_OK(Section());
    } while (offset_ < bytes_.size());
    return {};
  }

 private:
  // Passes one section to the sink, block by block.
  Status Section() {
    DYNAMICCL_TRY(const TraceHeader header, Header());
    DYNAMICCL_CHECK_OK(sink_.BeginSection(SectionOf(header), header.records_per_segment));
    const size_t first = offset_ + kTraceHeaderBytes + sizeof(SegmentHeader);
    int64_t last_ns = INT64_MIN;
    for (uint64_t done = 0; done < header.records_per_segment;) {
      const size_t count = std::min<uint64_t>(kArchiveBlockRecords, header.records_per_segment - done);
      DYNAMICCL_CHECK_OK(Block(first + done * sizeof(TraceRecord), count, last_ns));
      done += count;
    }
    if (hash_.value() != header.content_hash)
      return MakeError(ErrorKind::kCorrupt, "byte {}: the records are damaged (content hash)", first);
    offset_ += header.section_bytes;
    return sink_.EndSection(0);
  }

  Result<TraceHeader> HeaderAt(size_t offset) {
    if (bytes_.size() - offset < kTraceHeaderBytes) return tl::unexpected(EndsInHeader(bytes_.size()));
    DYNAMICCL_TRY(const auto front, bytes_.Read(offset, sizeof(TraceHeader)));
    TraceHeader header;
    std::memcpy(&header, front.data(), sizeof(header));
    DYNAMICCL_CHECK_OK(CheckHeader(header));
    return header;
  }

  // Reads and checks the headers in front of the records.
  Result<TraceHeader> Header() {
    constexpr size_t kFront = kTraceHeaderBytes + sizeof(SegmentHeader);
    DYNAMICCL_TRY(const TraceHeader header, HeaderAt(offset_));
    if (bytes_.size() - offset_ < kFront) return tl::unexpected(EndsInHeader(bytes_.size()));
    DYNAMICCL_TRY(const auto front, bytes_.Read(offset_, kFront));
    SegmentHeader segment;
    std::memcpy(&segment, front.data() + kTraceHeaderBytes, sizeof(segment));
    if (!IsStreamable(header) || segment.magic != kSegmentMagic || segment.head != header.records_per_segment)
      return MakeError(ErrorKind::kUnsupported, "byte {}: not a finished section of one segment", offset_);
    if (header.section_bytes > bytes_.size() - offset_)
      return MakeError(ErrorKind::kCorrupt, "byte {}: the file ends, but the section should reach to byte {}",
                       bytes_.size(), offset_ + header.section_bytes);
    hash_.Begin(front.first(kTraceHeaderBytes), front.subspan(kTraceHeaderBytes));
    return header;
  }

  // Passes one block; its records must be complete and in order.
  Status Block(size_t offset, size_t count, int64_t& last_ns) {
    DYNAMICCL_TRY(const auto bytes, bytes_.Read(offset, count * sizeof(TraceRecord)));
    hash_.Update(bytes);
    records_.resize(count);
    std::memcpy(records_.data(), bytes.data(), bytes.size());
    for (const TraceRecord& record : records_) {
      if (!IsWhole(record) || record.issued_ns < last_ns)
        return MakeError(ErrorKind::kUnsupported, "byte {}: records that are torn or out of order", offset);
      last_ns = record.issued_ns;
    }
    return sink_.Take(records_);
  }

  ByteSource& bytes_;
  RecordSink& sink_;
  // Position of the section in the file.
  size_t offset_ = 0;
  RunningHash hash_;
  std::vector<TraceRecord> records_;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> CreateTrace(const std::string& path) {
  return std::make_unique<TraceFile>(path);
}

Status StreamTrace(const std::string& path, RecordSink& sink) {
  DYNAMICCL_TRY(FileBytes bytes, FileBytes::Open(path));
  DYNAMICCL_TRY(const auto head, bytes.Read(0, std::min(bytes.size(), sizeof(kArchiveMagic))));
  if (IsTraceArchive(head)) return StreamTraceArchive(bytes, path, sink);
  if (head.size() < sizeof(kTraceMagic) || std::memcmp(head.data(), kTraceMagic, sizeof(kTraceMagic)) != 0)
    return MakeError(ErrorKind::kUnsupported, "{}: byte 0: no binary trace begins here", path);
  const Status status = SectionStream(bytes, sink).Run(path);
  return status ? status : Wrap(status.error(), path);
}

}  // namespace dynamiccl
