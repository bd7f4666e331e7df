// SPDX-License-Identifier: Apache-2.0
// A thread writes its records nearly in order of issue; only a group's calls come after the tuner's answers
// to the whole group. So each ring keeps a window of records, into which new ones are sorted, and the
// earliest record of all windows is passed on. An earlier pass counts the complete records, because
// the section's description, which comes before its records, states how many are lost.
#include "traces/format/ring_stream.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "traces/format/record_views.h"
#include "traces/format/section_header.h"
#include "traces/format/trace_archive.h"

namespace dynamiccl {
namespace {

// The windows of all rings together hold this many records, which take 8 MiB.
constexpr size_t kWindows = 1 << 17;
// The least and the largest number of records that a window holds after the record that is passed on next.
constexpr size_t kLeastAhead = 16;
constexpr size_t kMostAhead = 4096;
// The average number of places by which a record may move when it is sorted in. If records move farther, they
// are not in order of issue, and sorting them would take long.
constexpr uint64_t kMostMoves = 64;

// One thread's ring, or the table of communicators.
class Ring {
 public:
  Ring(uint64_t first_record, uint64_t capacity, const SegmentHeader& segment)
      : first_record_(first_record), capacity_(capacity), segment_(segment), next_(segment.head - count()) {}

  // Number of records that the ring still has.
  uint64_t count() const { return std::min(segment_.head, capacity_); }
  uint64_t replaced() const { return segment_.head - count(); }
  bool has_mark() const {
    return segment_.inside.what != static_cast<uint8_t>(InsideOf::kNothing) &&
           segment_.inside.what <= static_cast<uint8_t>(InsideOf::kInit);
  }

  // Reads until `ahead` records wait, or none is left in the file.
  Status Fill(ByteSource& bytes, size_t ahead) {
    while (waiting_.size() < ahead && next_ < segment_.head)
      DYNAMICCL_CHECK_OK(
          ReadSome(bytes, ahead - waiting_.size(), [this](const TraceRecord& record) { SortIn(record); }));
    if (next_ == segment_.head && has_mark()) {
      SortIn(SealedMark());
      segment_.inside.what = static_cast<uint8_t>(InsideOf::kNothing);
    }
    if (moves_ > kMostMoves * (count() + kWindows))
      return MakeError(ErrorKind::kUnsupported, "byte {}: records out of order", first_record_);
    return {};
  }
  // Counts the complete records, and begins again.
  Result<uint64_t> CountWhole(ByteSource& bytes) {
    uint64_t whole = 0;
    while (next_ < segment_.head)
      DYNAMICCL_CHECK_OK(ReadSome(bytes, kMostAhead, [&whole](const TraceRecord&) { ++whole; }));
    next_ -= count();
    return whole;
  }

  bool empty() const { return waiting_.empty(); }
  size_t waiting() const { return waiting_.size(); }
  const TraceRecord& front() const { return waiting_.front(); }
  void Pop() { waiting_.pop_front(); }

 private:
  // Reads at most `most` further records and passes the complete ones to `consumer`.
  template <typename Consumer>
  Status ReadSome(ByteSource& bytes, size_t most, const Consumer& consumer) {
    const uint64_t place = next_ % capacity_;
    const uint64_t some = std::min<uint64_t>({most, segment_.head - next_, capacity_ - place});
    DYNAMICCL_TRY(const auto read,
                  bytes.Read(first_record_ + place * sizeof(TraceRecord), some * sizeof(TraceRecord)));
    for (size_t i = 0; i < some; ++i) {
      TraceRecord record;
      std::memcpy(&record, read.data() + i * sizeof(record), sizeof(record));
      if (IsWhole(record)) consumer(record);
    }
    next_ += some;
    return {};
  }
  // Records with the same time keep their order.
  void SortIn(const TraceRecord& record) {
    auto place = waiting_.end();
    for (; place != waiting_.begin() && std::prev(place)->issued_ns > record.issued_ns; --place) ++moves_;
    waiting_.insert(place, record);
  }
  TraceRecord SealedMark() const {
    TraceRecord record = InsideRecord(segment_.inside);
    Seal(record);
    return record;
  }

  uint64_t first_record_;  // offset in the file
  uint64_t capacity_;
  SegmentHeader segment_;
  uint64_t next_;  // number of the next record to read, counted since the thread's start
  std::deque<TraceRecord> waiting_;
  uint64_t moves_ = 0;
};

// Merges the rings of one section.
class RingMerge {
 public:
  RingMerge(ByteSource& bytes, RecordSink& sink) : bytes_(bytes), sink_(sink) {}

  Status Run(const TraceHeader& header) {
    DYNAMICCL_CHECK_OK(OpenRings(header));
    TraceSection description = SectionOf(header);
    uint64_t records = 0;
    for (Ring& ring : rings_) {
      DYNAMICCL_TRY(const uint64_t whole, ring.CountWhole(bytes_));
      records += whole + (ring.has_mark() ? 1 : 0);
      description.replaced += ring.replaced();
      description.lost += ring.replaced() + ring.count() - whole;
    }
    DYNAMICCL_CHECK_OK(sink_.BeginSection(description, records));
    DYNAMICCL_TRY(const uint64_t passed, PassAll());
    if (passed != records)
      return MakeError(ErrorKind::kUnsupported, "{} records, where {} were counted: the file changed", passed,
                       records);
    return sink_.EndSection(0);
  }

 private:
  // The table comes first, so that communicators come before calls of the same time.
  Status OpenRings(const TraceHeader& header) {
    if (header.table_records > 0) DYNAMICCL_CHECK_OK(OpenRing(header.header_bytes, header.table_records));
    for (uint32_t i = 0; i < header.segments; ++i)
      DYNAMICCL_CHECK_OK(
          OpenRing(header.first_segment + i * header.segment_bytes, header.records_per_segment));
    ahead_ = std::clamp(kWindows / (2 * std::max<size_t>(rings_.size(), 1)), kLeastAhead, kMostAhead);
    return {};
  }
  Status OpenRing(uint64_t offset, uint64_t capacity) {
    SegmentHeader segment;
    DYNAMICCL_TRY(const auto read, bytes_.Read(offset, sizeof(segment)));
    std::memcpy(&segment, read.data(), sizeof(segment));
    if (segment.magic == kSegmentMagic && capacity > 0)
      rings_.emplace_back(offset + sizeof(segment), capacity, segment);
    return {};
  }

  // Passes the records of all rings. `next_` is a heap of the rings that have records. The ring with the
  // earliest record is on top. Returns the number of records.
  Result<uint64_t> PassAll() {
    uint64_t passed = 0;
    for (size_t i = 0; i < rings_.size(); ++i) DYNAMICCL_CHECK_OK(Enter(i));
    int64_t last_ns = INT64_MIN;
    while (!next_.empty()) {
      std::ranges::pop_heap(next_, IsLater{rings_});
      const size_t earliest = next_.back();
      next_.pop_back();
      const TraceRecord& record = rings_[earliest].front();
      if (record.issued_ns < last_ns)
        return MakeError(ErrorKind::kUnsupported, "ring {}: records out of order", earliest);
      last_ns = record.issued_ns;
      block_.push_back(record);
      ++passed;
      if (block_.size() == kArchiveBlockRecords) DYNAMICCL_CHECK_OK(PassBlock());
      rings_[earliest].Pop();
      DYNAMICCL_CHECK_OK(Enter(earliest));
    }
    if (!block_.empty()) DYNAMICCL_CHECK_OK(PassBlock());
    return passed;
  }
  Status Enter(size_t ring) {
    if (rings_[ring].waiting() < ahead_) DYNAMICCL_CHECK_OK(rings_[ring].Fill(bytes_, 2 * ahead_));
    if (rings_[ring].empty()) return {};
    next_.push_back(ring);
    std::ranges::push_heap(next_, IsLater{rings_});
    return {};
  }
  Status PassBlock() {
    const Status status = sink_.Take(block_);
    block_.clear();
    return status;
  }

  struct IsLater {
    const std::vector<Ring>& rings;
    bool operator()(size_t a, size_t b) const {
      const int64_t a_ns = rings[a].front().issued_ns, b_ns = rings[b].front().issued_ns;
      return a_ns != b_ns ? a_ns > b_ns : a > b;
    }
  };

  ByteSource& bytes_;
  RecordSink& sink_;
  std::vector<Ring> rings_;
  size_t ahead_ = kLeastAhead;
  std::vector<size_t> next_;
  std::vector<TraceRecord> block_;
};

}  // namespace

Status StreamRings(ByteSource& bytes, const TraceHeader& header, RecordSink& sink) {
  DYNAMICCL_CHECK_OK(CheckLayout(header));
  if (header.record_bytes != sizeof(TraceRecord))
    return MakeError(ErrorKind::kUnsupported, "records of {} bytes", header.record_bytes);
  if (StatedEnd(header) > bytes.size())
    return MakeError(ErrorKind::kCorrupt, "byte {}: the file ends, but the section should reach to byte {}",
                     bytes.size(), StatedEnd(header));
  return RingMerge(bytes, sink).Run(header);
}

}  // namespace dynamiccl
