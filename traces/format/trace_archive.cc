// SPDX-License-Identifier: Apache-2.0
// The writer collects records until a block is full. The reader checks a block's header, then its payload's
// hash, then its place in the archive. In salvage, a damaged block is skipped by looking for the next header
// with a right checksum, byte by byte.
#include "traces/format/trace_archive.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <ostream>

#include "src/base/counted.h"
#include "traces/format/byte_source.h"
#include "traces/format/record_columns.h"
#include "traces/format/record_stream.h"
#include "traces/format/section_header.h"

namespace dynamiccl {
namespace {

// Maximum bytes of a block's payload: twice the longest block without compression.
constexpr size_t kMaxPayload = 8u << 20;
// Number of damaged places that salvage describes; it counts the others. A hostile file may have one every 48
// bytes.
constexpr size_t kDescribedDamages = 20;

// Bytes of the description of a section that has no replaced records: all fields before `replaced`. Archives
// from before that field existed have only these fields. Builds from that time can therefore read all
// archives except those with replaced records.
constexpr size_t kShortDescription = offsetof(TraceHeader, replaced);

// The checksum of a header covers all bytes before the checksum.
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

// Writes a block; fills in its magic, lengths and checksums.
void PutBlock(std::ostream& stream, ArchiveBlockHeader header, std::span<const std::byte> payload) {
  header.magic = kArchiveBlockMagic;
  header.payload_bytes = payload.size();
  header.payload_hash = XXH3_64bits(payload.data(), payload.size());
  SetChecksum(header);
  Put(stream, &header, sizeof(header));
  Put(stream, payload.data(), payload.size());
}

// A block header without the fields that PutBlock fills in.
ArchiveBlockHeader BlockOf(ArchiveBlockKind kind, size_t section, size_t records, uint64_t first_record) {
  ArchiveBlockHeader header{};
  header.kind = static_cast<uint32_t>(kind);
  header.section = static_cast<uint32_t>(section);
  header.records = static_cast<uint32_t>(records);
  header.first_record = first_record;
  return header;
}

// Writes a trace block by block and keeps the records of one block.
class BlockWriter {
 public:
  explicit BlockWriter(std::ostream& stream) : stream_(stream) {
    ArchiveHeader header{};
    std::memcpy(header.magic, kArchiveMagic, sizeof(kArchiveMagic));
    header.version = kArchiveVersion;
    header.header_bytes = sizeof(header);
    SetChecksum(header);
    Put(stream_, &header, sizeof(header));
  }

  void BeginSection(const TraceSection& section, uint64_t records) {
    const TraceHeader description = HeaderOf(section, records);
    const auto bytes = std::as_bytes(std::span(&description, 1));
    PutBlock(stream_, BlockOf(ArchiveBlockKind::kSection, sections_++, 0, 0),
             Compress(description.replaced == 0 ? bytes.first(kShortDescription) : bytes));
    first_ = 0;
  }
  // Collects records, and writes a block whenever one is full.
  void Take(std::span<const TraceRecord> records) {
    while (!records.empty()) {
      const size_t room = kArchiveBlockRecords - pending_.size();
      const auto taken = records.first(std::min(room, records.size()));
      pending_.insert(pending_.end(), taken.begin(), taken.end());
      records = records.subspan(taken.size());
      if (pending_.size() == kArchiveBlockRecords) EndSection();
    }
  }
  // Writes the collected records, even if they do not fill a block.
  void EndSection() {
    if (pending_.empty()) return;
    PutBlock(stream_, BlockOf(ArchiveBlockKind::kRecords, sections_ - 1, pending_.size(), first_),
             PackRecords(pending_));
    first_ += pending_.size();
    records_ += pending_.size();
    pending_.clear();
  }
  void End() { PutBlock(stream_, BlockOf(ArchiveBlockKind::kEnd, sections_, 0, records_), {}); }

 private:
  std::ostream& stream_;
  std::vector<TraceRecord> pending_;
  size_t sections_ = 0;
  uint64_t first_ = 0;    // index of pending_'s first record in its section
  uint64_t records_ = 0;  // number of records in all sections
};

// Writes an archive to a file.
class ArchiveFile final : public RecordWriter {
 public:
  explicit ArchiveFile(const std::string& path)
      : path_(path), stream_(path, std::ios::binary | std::ios::trunc), writer_(stream_) {}

  Status BeginSection(const TraceSection& description, uint64_t records) override {
    writer_.BeginSection(description, records);
    return Written();
  }
  Status Take(std::span<const TraceRecord> records) override {
    writer_.Take(records);
    return Written();
  }
  Status EndSection(uint64_t missing) override {
    if (missing > 0) return MakeError(ErrorKind::kInternal, "{}: {} records have not come", path_, missing);
    writer_.EndSection();
    return Written();
  }
  Status Finish() override {
    writer_.End();
    stream_.close();
    return Written();
  }

 private:
  Status Written() const {
    if (stream_) return {};
    return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path_, ErrnoText(errno));
  }

  std::string path_;
  std::ofstream stream_;
  BlockWriter writer_;
};

// ---- reading ----

// Reads an archive into a sink.
class ArchiveParser {
 public:
  ArchiveParser(ByteSource& bytes, RecordSink& sink, TraceReading reading)
      : bytes_(bytes), sink_(sink), strict_(reading == TraceReading::kStrict) {}

  // Reads the whole archive. In salvage it never stops at damage.
  Status Run() {
    DYNAMICCL_CHECK_OK(ReadHeader());
    while (!ended_ && offset_ < bytes_.size()) {
      if (const Status status = ReadBlock(); !status) {
        if (strict_) return status;
        Note(status);
        FindNextBlock();
      }
    }
    if (strict_ && !ended_) return Fail("the archive ends here, but no end block has come");
    DYNAMICCL_CHECK_OK(FinishSection());
    if (!strict_ && !ended_) Note(Fail("the archive ends here, but no end block has come"));
    if (!strict_) return next_section_ == 0 ? Fail("no block of this archive is whole") : Status();
    return offset_ == bytes_.size() ? Status() : Fail("bytes after the end block");
  }

  // The damage that salvage has found, in order. A last line counts the places that are not described.
  std::vector<std::string> damage() const {
    std::vector<std::string> lines = described_damage_;
    if (further_damages_ > 0) lines.push_back(Counted(further_damages_, "more damaged place"));
    return lines;
  }

 private:
  void Note(const Status& damage) {
    if (described_damage_.size() < kDescribedDamages)
      described_damage_.push_back(damage.error().message);
    else
      ++further_damages_;
  }

  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "block at byte {}: {}", offset_, what);
  }

  // Reads the archive's header. In salvage a damaged header does not stop reading, but the header of another
  // version does.
  Status ReadHeader() {
    ArchiveHeader header;
    if (bytes_.size() < sizeof(header)) return Fail("the file ends inside the archive's header");
    DYNAMICCL_TRY(const auto bytes, bytes_.Read(0, sizeof(header)));
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (!HasChecksum(header)) {
      const Status damage = Fail("the archive's header is damaged");
      if (strict_) return damage;
      Note(damage);
    }
    if (HasChecksum(header) && header.version != kArchiveVersion)
      return Fail(fmt::format("archive version {}, this build reads {}", header.version, kArchiveVersion));
    offset_ = sizeof(header);
    return {};
  }

  // Reads the block at offset_. If all of it is right, moves offset_ past it.
  Status ReadBlock() {
    DYNAMICCL_TRY(const ArchiveBlockHeader header, BlockHeaderAt(offset_));
    DYNAMICCL_TRY(const auto payload, bytes_.Read(offset_ + sizeof(header), header.payload_bytes));
    if (XXH3_64bits(payload.data(), payload.size()) != header.payload_hash)
      return Fail(fmt::format("damaged: its {} records do not have the checksum they were written with",
                              header.records));
    DYNAMICCL_CHECK_OK(TakeBlock(header, payload));
    offset_ += sizeof(header) + header.payload_bytes;
    return {};
  }

  // The block header at `offset`, if it is right and its payload lies inside the file.
  Result<ArchiveBlockHeader> BlockHeaderAt(size_t offset) {
    ArchiveBlockHeader header;
    if (bytes_.size() - offset < sizeof(header)) return Fail("the file ends inside a block's header");
    DYNAMICCL_TRY(const auto bytes, bytes_.Read(offset, sizeof(header)));
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.magic != kArchiveBlockMagic || !HasChecksum(header) || header.payload_bytes > kMaxPayload ||
        header.records > kArchiveBlockRecords) {
      return Fail("the block's header is damaged");
    }
    if (header.payload_bytes > bytes_.size() - offset - sizeof(header))
      return Fail("the file ends inside the block");
    return header;
  }

  // Moves offset_ to the next block header that is right, or to the end.
  void FindNextBlock() {
    for (++offset_; offset_ + sizeof(ArchiveBlockHeader) <= bytes_.size(); ++offset_) {
      if (BlockHeaderAt(offset_)) return;
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

  // Begins a section with its description.
  Status TakeSection(const ArchiveBlockHeader& header, std::span<const std::byte> payload) {
    if (strict_ && header.section != next_section_) return Fail("a section is missing before this block");
    auto unpacked = Decompress(payload, kShortDescription);
    if (!unpacked) unpacked = Decompress(payload, sizeof(TraceHeader));
    if (!unpacked) return Fail(unpacked.error().message);
    TraceHeader description{};
    std::memcpy(&description, unpacked->data(), unpacked->size());
    if (strict_ && !Complete()) return Fail("records of the section before are missing");
    return BeginSection(header.section, SectionOf(description), description.records_per_segment);
  }

  // Passes the records of a block to the sink. In salvage, records whose section has no description start a
  // section with unknown rank.
  Status TakeRecords(const ArchiveBlockHeader& header, std::span<const std::byte> payload) {
    const bool of_this_section = next_section_ > 0 && header.section + 1 == next_section_;
    if (strict_ && (!of_this_section || header.first_record != taken_records_))
      return Fail("a block is missing before this one");
    if (!of_this_section) DYNAMICCL_CHECK_OK(BeginSection(header.section, TraceSection(), 0));
    std::vector<TraceRecord> records;
    if (const Status status = UnpackRecords(payload, header.records, records); !status)
      return Fail(status.error().message);
    taken_records_ += records.size();
    return sink_.Take(records);
  }

  // The end block states how many sections and records there must have been.
  Status TakeEnd(const ArchiveBlockHeader& header) {
    if (strict_ && (header.section != next_section_ || !Complete()))
      return Fail("blocks are missing before the end");
    ended_ = true;
    return {};
  }

  Status BeginSection(uint32_t index, const TraceSection& section, uint64_t records) {
    DYNAMICCL_CHECK_OK(FinishSection());
    next_section_ = index + 1;
    wanted_records_ = records;
    taken_records_ = 0;
    open_ = true;
    return sink_.BeginSection(section, records);
  }

  // True if the section has all of its records.
  bool Complete() const { return !open_ || taken_records_ == wanted_records_; }

  Status FinishSection() {
    if (!open_) return {};
    open_ = false;
    return sink_.EndSection(taken_records_ < wanted_records_ ? wanted_records_ - taken_records_ : 0);
  }

  ByteSource& bytes_;
  RecordSink& sink_;
  const bool strict_;
  size_t offset_ = 0;
  bool ended_ = false;
  uint32_t next_section_ = 0;
  bool open_ = false;            // a section has begun
  uint64_t wanted_records_ = 0;  // number of records that the section's description states
  uint64_t taken_records_ = 0;
  std::vector<std::string> described_damage_;  // at most kDescribedDamages lines
  uint64_t further_damages_ = 0;
};

// Collects the trace in memory.
class TraceSink final : public RecordSink {
 public:
  Status BeginSection(const TraceSection& description, uint64_t) override {
    trace.sections.push_back(description);
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    std::vector<TraceRecord>& all = trace.sections.back().records;
    all.insert(all.end(), records.begin(), records.end());
    return {};
  }
  Status EndSection(uint64_t missing) override {
    trace.sections.back().lost += missing;
    return {};
  }

  Trace trace;
};

// Puts the archive's name before an error.
Status Named(const Status& status, const std::string& name) {
  if (status) return status;
  return WithHint(Wrap(status.error(), name), "`dynamiccl trace recover` takes what is whole");
}

}  // namespace

bool IsTraceArchive(std::span<const std::byte> head) {
  return head.size() >= sizeof(kArchiveMagic) &&
         std::memcmp(head.data(), kArchiveMagic, sizeof(kArchiveMagic)) == 0;
}

void AppendTraceArchive(std::ostream& stream, const Trace& trace) {
  BlockWriter writer(stream);
  for (const TraceSection& section : trace.sections) {
    writer.BeginSection(section, section.records.size());
    writer.Take(section.records);
    writer.EndSection();
  }
  writer.End();
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
  MemoryBytes source(bytes);
  TraceSink sink;
  ArchiveParser parser(source, sink, reading);
  DYNAMICCL_CHECK_OK(Named(parser.Run(), name));
  for (const std::string& damage : parser.damage())
    sink.trace.damage.push_back(fmt::format("{}: {}", name, damage));
  return std::move(sink.trace);
}

Status StreamTraceArchive(ByteSource& bytes, const std::string& name, RecordSink& sink) {
  return Named(ArchiveParser(bytes, sink, TraceReading::kStrict).Run(), name);
}

Result<std::unique_ptr<RecordWriter>> CreateArchive(const std::string& path) {
  return std::make_unique<ArchiveFile>(path);
}

}  // namespace dynamiccl
