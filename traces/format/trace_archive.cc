// SPDX-License-Identifier: Apache-2.0
#include "traces/format/trace_archive.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <ostream>

#include "traces/format/record_columns.h"
#include "traces/format/section_header.h"

namespace dynamiccl {
namespace {

constexpr size_t kMaxPayload = 8u << 20;  // twice the longest block uncompressed

template <typename Header>
void SetChecksum(Header& header) {
  header.checksum = XXH3_64bits(&header, offsetof(Header, checksum));
}
template <typename Header>
bool HasChecksum(const Header& header) {
  return header.checksum == XXH3_64bits(&header, offsetof(Header, checksum));
}

// ---- writing ----

void Put(std::ostream& stream, const void* data, size_t bytes) {
  stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void PutBlock(std::ostream& stream, ArchiveBlockHeader header, std::span<const std::byte> payload) {
  header.magic = kArchiveBlockMagic;
  header.payload_bytes = payload.size();
  header.payload_hash = XXH3_64bits(payload.data(), payload.size());
  SetChecksum(header);
  Put(stream, &header, sizeof(header));
  Put(stream, payload.data(), payload.size());
}

ArchiveBlockHeader BlockOf(ArchiveBlockKind kind, size_t section, size_t records, uint64_t first_record) {
  ArchiveBlockHeader header{};
  header.kind = static_cast<uint32_t>(kind);
  header.section = static_cast<uint32_t>(section);
  header.records = static_cast<uint32_t>(records);
  header.first_record = first_record;
  return header;
}

void PutSection(std::ostream& stream, size_t index, const TraceSection& section) {
  const TraceHeader description = HeaderOf(section);
  PutBlock(stream, BlockOf(ArchiveBlockKind::kSection, index, 0, 0),
           Compress(std::as_bytes(std::span(&description, 1))));
  const std::span<const TraceRecord> records(section.records);
  for (size_t first = 0; first < records.size(); first += kArchiveBlockRecords) {
    const auto block = records.subspan(first, std::min<size_t>(kArchiveBlockRecords, records.size() - first));
    PutBlock(stream, BlockOf(ArchiveBlockKind::kRecords, index, block.size(), first), PackRecords(block));
  }
}

// ---- reading ----

class ArchiveParser {
 public:
  ArchiveParser(std::span<const std::byte> bytes, TraceReading reading)
      : bytes_(bytes), strict_(reading == TraceReading::kStrict) {}

  Status Run() {
    DYNAMICCL_CHECK_OK(ReadHeader());
    while (!ended_ && offset_ < bytes_.size()) {
      if (const Status status = ReadBlock(); !status) {
        if (strict_) return status;
        FindNextBlock();
      }
    }
    FinishSection();
    if (!strict_) return trace_.sections.empty() ? Fail("no block of this archive is whole") : Status();
    if (!ended_) return Fail("the archive ends here, but no end block has come");
    return offset_ == bytes_.size() ? Status() : Fail("bytes after the end block");
  }

  Trace& trace() { return trace_; }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "block at byte {}: {}", offset_, what);
  }

  Status ReadHeader() {
    ArchiveHeader header;
    if (bytes_.size() < sizeof(header)) return Fail("the file ends inside the archive's header");
    std::memcpy(&header, bytes_.data(), sizeof(header));
    if (!HasChecksum(header) && strict_) return Fail("the archive's header is damaged");
    if (HasChecksum(header) && header.version != kArchiveVersion)
      return Fail(fmt::format("archive version {}, this build reads {}", header.version, kArchiveVersion));
    offset_ = sizeof(header);
    return {};
  }

  // At offset_; moves it behind the block when all of it is right.
  Status ReadBlock() {
    DYNAMICCL_TRY(const ArchiveBlockHeader header, BlockHeaderAt(offset_));
    const auto payload = bytes_.subspan(offset_ + sizeof(header), header.payload_bytes);
    if (XXH3_64bits(payload.data(), payload.size()) != header.payload_hash)
      return Fail(fmt::format("damaged: its {} records do not have the checksum they were written with",
                              header.records));
    DYNAMICCL_CHECK_OK(TakeBlock(header, payload));
    offset_ += sizeof(header) + payload.size();
    return {};
  }

  Result<ArchiveBlockHeader> BlockHeaderAt(size_t offset) const {
    ArchiveBlockHeader header;
    if (bytes_.size() - offset < sizeof(header)) return Fail("the file ends inside a block's header");
    std::memcpy(&header, bytes_.data() + offset, sizeof(header));
    if (header.magic != kArchiveBlockMagic || !HasChecksum(header) || header.payload_bytes > kMaxPayload ||
        header.records > kArchiveBlockRecords) {
      return Fail("the block's header is damaged");
    }
    if (header.payload_bytes > bytes_.size() - offset - sizeof(header))
      return Fail("the file ends inside the block");
    return header;
  }

  void FindNextBlock() {
    for (++offset_; offset_ + sizeof(ArchiveBlockHeader) <= bytes_.size(); ++offset_) {
      uint32_t magic = 0;
      std::memcpy(&magic, bytes_.data() + offset_, sizeof(magic));
      if (magic == kArchiveBlockMagic && BlockHeaderAt(offset_)) return;
    }
    offset_ = bytes_.size();
  }

  Status TakeBlock(const ArchiveBlockHeader& header, std::span<const std::byte> payload) {
    switch (static_cast<ArchiveBlockKind>(header.kind)) {
      case ArchiveBlockKind::kSection:
        return TakeSection(header, payload);
      case ArchiveBlockKind::kRecords:
        return TakeRecords(header, payload);
      case ArchiveBlockKind::kEnd:
        return TakeEnd(header);
    }
    return Fail(fmt::format("a block of unknown kind {}", header.kind));
  }

  Status TakeSection(const ArchiveBlockHeader& header, std::span<const std::byte> payload) {
    if (strict_ && header.section != next_section_) return Fail("a section is missing before this block");
    auto unpacked = Decompress(payload, sizeof(TraceHeader));
    if (!unpacked) return Fail(unpacked.error().message);
    TraceHeader description;
    std::memcpy(&description, unpacked->data(), sizeof(description));
    if (strict_ && !Complete()) return Fail("records of the section before are missing");
    BeginSection(header.section, SectionOf(description), description.records_per_segment);
    return {};
  }

  Status TakeRecords(const ArchiveBlockHeader& header, std::span<const std::byte> payload) {
    const bool of_this_section = !trace_.sections.empty() && header.section + 1 == next_section_;
    if (strict_ && (!of_this_section || header.first_record != trace_.sections.back().records.size()))
      return Fail("a block is missing before this one");
    if (!of_this_section) BeginSection(header.section, TraceSection(), 0);
    const Status status = UnpackRecords(payload, header.records, trace_.sections.back().records);
    return status ? status : Fail(status.error().message);
  }

  Status TakeEnd(const ArchiveBlockHeader& header) {
    if (strict_ && (header.section != next_section_ || !Complete()))
      return Fail("blocks are missing before the end");
    ended_ = true;
    return {};
  }

  void BeginSection(uint32_t index, TraceSection section, uint64_t records) {
    FinishSection();
    trace_.sections.push_back(std::move(section));
    next_section_ = index + 1;
    wanted_records_ = records;
  }

  bool Complete() const {
    return trace_.sections.empty() || trace_.sections.back().records.size() == wanted_records_;
  }

  void FinishSection() {
    if (trace_.sections.empty()) return;
    TraceSection& section = trace_.sections.back();
    if (section.records.size() < wanted_records_) section.lost += wanted_records_ - section.records.size();
    wanted_records_ = 0;
  }

  std::span<const std::byte> bytes_;
  const bool strict_;
  size_t offset_ = 0;
  bool ended_ = false;
  uint32_t next_section_ = 0;
  uint64_t wanted_records_ = 0;  // of the last section
  Trace trace_;
};

}  // namespace

bool IsTraceArchive(std::span<const std::byte> head) {
  return head.size() >= sizeof(kArchiveMagic) &&
         std::memcmp(head.data(), kArchiveMagic, sizeof(kArchiveMagic)) == 0;
}

void AppendTraceArchive(std::ostream& stream, const Trace& trace) {
  ArchiveHeader header{};
  std::memcpy(header.magic, kArchiveMagic, sizeof(kArchiveMagic));
  header.version = kArchiveVersion;
  header.header_bytes = sizeof(header);
  SetChecksum(header);
  Put(stream, &header, sizeof(header));
  uint64_t records = 0;
  for (size_t i = 0; i < trace.sections.size(); ++i) {
    PutSection(stream, i, trace.sections[i]);
    records += trace.sections[i].records.size();
  }
  PutBlock(stream, BlockOf(ArchiveBlockKind::kEnd, trace.sections.size(), 0, records), {});
}

Status WriteTraceArchive(const std::string& path, const Trace& trace) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  AppendTraceArchive(stream, trace);
  stream.close();
  if (!stream) return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  return {};
}

Result<Trace> ParseTraceArchive(std::span<const std::byte> bytes, const std::string& name,
                                TraceReading reading) {
  ArchiveParser parser(bytes, reading);
  if (const Status status = parser.Run(); !status)
    return WithHint(Wrap(status.error(), name), "`dynamiccl trace recover` takes what is whole");
  return std::move(parser.trace());
}

}  // namespace dynamiccl
