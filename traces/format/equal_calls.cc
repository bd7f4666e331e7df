// SPDX-License-Identifier: Apache-2.0
#include "traces/format/equal_calls.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <optional>

#include "traces/format/record_views.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

// A count of calls, and the sum of their hashes modulo 2^64, which no order of the calls changes.
struct CallSum {
  uint64_t calls = 0;
  uint64_t sum = 0;
  void Take(const TraceRecord& record);
  friend bool operator==(const CallSum&, const CallSum&) = default;
};

bool Is(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

// Hashes the fields in which ranks must be equal.
uint64_t HashOf(const TraceRecord& record) {
  const uint64_t fields[] = {
      record.call_number, record.bytes,
      uint64_t{record.index_in_group} | uint64_t{static_cast<uint16_t>(record.root_or_peer)} << 16 |
          uint64_t{record.collective} << 32 | uint64_t{record.data_type} << 40 | uint64_t{record.op} << 48};
  return XXH3_64bits(fields, sizeof(fields));
}

void CallSum::Take(const TraceRecord& record) {
  ++calls;
  sum += HashOf(record);
}

// Keeps one `Own` for each communicator of the section that is read.
template <typename Own>
class SectionSink : public RecordSink {
 public:
  Status BeginSection(const TraceSection& /*description*/, uint64_t /*records*/) override {
    ids_.clear();
    own_.clear();
    return {};
  }

 protected:
  void NoteId(const TraceRecord& record) {
    if (Is(record, RecordKind::kCommunicator)) ids_[record.communicator] = record.bytes;
  }

  // The communicators' ids and values, by the section's own numbers.
  std::map<uint32_t, uint64_t> ids_;
  std::map<uint32_t, Own> own_;
};

class CallSums final : public SectionSink<CallSum> {
 public:
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      NoteId(record);
      if (Is(record, RecordKind::kCollective)) own_[record.communicator].Take(record);
    }
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override {
    for (const auto& [number, id] : ids_) {
      const auto [first, is_first] = first_.try_emplace(id, own_[number]);
      equal_ = equal_ && (is_first || first->second == own_[number]);
    }
    return {};
  }
  bool equal() const { return equal_; }

 private:
  std::map<uint64_t, CallSum> first_;  // sums of each communicator's first rank, by id
  bool equal_ = true;
};

// The call numbers from `begin` to before `end`.
struct CallRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
// Ranges by the id of the communicator to which they belong.
using CallRanges = std::map<uint64_t, CallRange>;

// The calls of one rank on a communicator.
struct SeenCalls {
  uint64_t first = UINT64_MAX;
  uint64_t end = 0;
  bool has_point_to_point = false;
};

// Finds the call numbers that all ranks of each communicator should have.
class RangeSink final : public SectionSink<SeenCalls> {
 public:
  Status BeginSection(const TraceSection& description, uint64_t records) override {
    ends_early_ = !description.closed;
    begins_late_ = description.lost > 0;
    may_have_gaps_ = MayHaveGaps(description);
    return SectionSink::BeginSection(description, records);
  }
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      NoteId(record);
      if (Is(record, RecordKind::kPointToPoint) && IsPointToPoint(static_cast<Collective>(record.collective)))
        own_[record.communicator].has_point_to_point = true;
      if (!Is(record, RecordKind::kCollective)) continue;
      SeenCalls& seen = own_[record.communicator];
      if (may_have_gaps_ && record.call_number > seen.end) seen.first = record.call_number;
      seen.first = std::min(seen.first, record.call_number);
      seen.end = std::max(seen.end, record.call_number + 1);
    }
    return {};
  }
  // Of a section that lost records, only the calls after its last gap count: each thread's ring kept calls of
  // a different period. The first and the last group of calls that a rank still has may lack calls, so they
  // are not compared.
  Status EndSection(uint64_t /*missing*/) override {
    for (const auto& [number, id] : ids_) {
      const SeenCalls& seen = own_[number];
      Shared& shared = shared_[id];
      shared.comparable = shared.comparable && !seen.has_point_to_point;
      shared.end = std::max(shared.end, seen.end);
      if (begins_late_) shared.begin = std::max(shared.begin, seen.end == 0 ? UINT64_MAX : seen.first + 1);
      if (ends_early_) shared.stop = std::min(shared.stop, seen.end == 0 ? 0 : seen.end - 1);
    }
    return {};
  }
  CallRanges ranges() const {
    CallRanges ranges;
    for (const auto& [id, shared] : shared_) {
      const CallRange range{shared.begin, std::min(shared.end, shared.stop)};
      if (shared.comparable && range.begin < range.end) ranges[id] = range;
    }
    return ranges;
  }

 private:
  struct Shared {
    bool comparable = true;
    uint64_t begin = 0;
    uint64_t end = 0;            // end on the rank that came farthest
    uint64_t stop = UINT64_MAX;  // end on the killed rank that came least far
  };

  bool ends_early_ = false, begins_late_ = false, may_have_gaps_ = false;
  std::map<uint64_t, Shared> shared_;
};

// Divides each range into blocks, and finds the first block in which ranks differ.
class BlockSink final : public SectionSink<std::vector<CallSum>> {
 public:
  explicit BlockSink(const CallRanges& ranges) : ranges_(ranges) {}

  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      NoteId(record);
      if (!Is(record, RecordKind::kCollective)) continue;
      const auto id = ids_.find(record.communicator);
      const auto range = id == ids_.end() ? ranges_.end() : ranges_.find(id->second);
      if (range == ranges_.end() || record.call_number < range->second.begin ||
          record.call_number >= range->second.end)
        continue;
      Blocks& blocks = own_.try_emplace(record.communicator, kBlocks).first->second;
      blocks[(record.call_number - range->second.begin) / BlockOf(range->second)].Take(record);
    }
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override {
    for (const auto& [number, id] : ids_) {
      if (!ranges_.contains(id)) continue;
      const Blocks& blocks = own_.try_emplace(number, kBlocks).first->second;
      const auto [first, is_first] = first_.try_emplace(id, blocks);
      const auto unequal = std::ranges::mismatch(blocks, first->second).in1;
      if (unequal == blocks.end()) continue;
      const auto place = static_cast<uint64_t>(unequal - blocks.begin());
      const auto [differs, is_new] = differing_.try_emplace(id, place);
      differs->second = std::min(differs->second, place);
    }
    return {};
  }
  // Returns the first differing block of the first communicator that has one.
  CallRanges Differing() const {
    if (differing_.empty()) return {};
    const auto& [id, place] = *differing_.begin();
    const CallRange& range = ranges_.at(id);
    const uint64_t begin = range.begin + place * BlockOf(range);
    return {{id, {begin, std::min(begin + BlockOf(range), range.end)}}};
  }

 private:
  static constexpr size_t kBlocks = 256;
  using Blocks = std::vector<CallSum>;
  static uint64_t BlockOf(const CallRange& range) { return (range.end - range.begin - 1) / kBlocks + 1; }

  const CallRanges& ranges_;
  std::map<uint64_t, Blocks> first_;  // blocks of each communicator's first rank, by id
  std::map<uint64_t, uint64_t> differing_;
};

// Keeps the calls of one range, as if the ranks had issued no others.
class PartSink final : public RecordSink {
 public:
  PartSink(uint64_t id, CallRange range) : id_(id), range_(range) {}

  Status BeginSection(const TraceSection& description, uint64_t /*records*/) override {
    part.sections.push_back(description);
    part.sections.back().closed = true;
    part.sections.back().lost = 0;
    number_.reset();
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      const bool describes = Is(record, RecordKind::kCommunicator) && record.bytes == id_;
      if (describes) number_ = record.communicator;
      const bool in_range = Is(record, RecordKind::kCollective) && number_ == record.communicator &&
                            record.call_number >= range_.begin && record.call_number < range_.end;
      if (describes || in_range) part.sections.back().records.push_back(record);
    }
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override { return {}; }

  Trace part;

 private:
  uint64_t id_;
  CallRange range_;
  std::optional<uint32_t> number_;  // the number by which the section names the communicator
};

}  // namespace

Result<Status> CompareRanks(const RecordSource& source) {
  constexpr uint64_t kSmallRange = 1024;
  RangeSink shared;
  DYNAMICCL_CHECK_OK(source.Pass(shared));
  CallRanges ranges = shared.ranges();
  for (bool small = false; !small;) {
    BlockSink blocks(ranges);
    DYNAMICCL_CHECK_OK(source.Pass(blocks));
    ranges = blocks.Differing();
    if (ranges.empty()) return Result<Status>(Status());
    const CallRange& range = ranges.begin()->second;
    small = range.end - range.begin <= kSmallRange;
  }
  PartSink sink(ranges.begin()->first, ranges.begin()->second);
  DYNAMICCL_CHECK_OK(source.Pass(sink));
  return Result<Status>(CheckRanksAgree(sink.part));
}

Result<bool> RanksHaveEqualCalls(const RecordSource& source) {
  CallSums sums;
  DYNAMICCL_CHECK_OK(source.Pass(sums));
  return sums.equal();
}

}  // namespace dynamiccl
