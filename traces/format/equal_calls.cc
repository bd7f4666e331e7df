// SPDX-License-Identifier: Apache-2.0
#include "traces/format/equal_calls.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <map>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

// A count of calls, and the sum of their hashes modulo 2^64, which no order of the calls changes.
struct CallSum {
  uint64_t calls = 0;
  uint64_t sum = 0;
  friend bool operator==(const CallSum&, const CallSum&) = default;
};

// Hashes the fields in which ranks must be equal.
uint64_t HashOf(const TraceRecord& record) {
  const uint64_t fields[] = {
      record.call_number, record.bytes,
      uint64_t{record.index_in_group} | uint64_t{static_cast<uint16_t>(record.root_or_peer)} << 16 |
          uint64_t{record.collective} << 32 | uint64_t{record.data_type} << 40 | uint64_t{record.op} << 48};
  return XXH3_64bits(fields, sizeof(fields));
}

class CallSums final : public RecordSink {
 public:
  Status BeginSection(const TraceSection& /*description*/, uint64_t /*records*/) override {
    ids_.clear();
    own_.clear();
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      if (record.kind == static_cast<uint16_t>(RecordKind::kCommunicator))
        ids_[record.communicator] = record.bytes;
      if (record.kind != static_cast<uint16_t>(RecordKind::kCollective)) continue;
      CallSum& sum = own_[record.communicator];
      ++sum.calls;
      sum.sum += HashOf(record);
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
  // Of the section that is read: communicators' ids and sums by its own numbers.
  std::map<uint32_t, uint64_t> ids_;
  std::map<uint32_t, CallSum> own_;
  std::map<uint64_t, CallSum> first_;  // of the first rank of each communicator, by id
  bool equal_ = true;
};

}  // namespace

Result<bool> RanksHaveEqualCalls(const RecordSource& source) {
  CallSums sums;
  DYNAMICCL_CHECK_OK(source.Pass(sums));
  return sums.equal();
}

}  // namespace dynamiccl
