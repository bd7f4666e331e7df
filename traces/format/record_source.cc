// SPDX-License-Identifier: Apache-2.0
#include "traces/format/record_source.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// The description of a section without its records.
TraceSection DescriptionOf(const TraceSection& section) {
  TraceSection description;
  description.rank = section.rank;
  description.world = section.world;
  description.process_id = section.process_id;
  description.flags = section.flags;
  description.host = section.host;
  description.library = section.library;
  description.writer = section.writer;
  description.opened = section.opened;
  description.closed_at = section.closed_at;
  description.closed = section.closed;
  description.lost = section.lost;
  description.replaced = section.replaced;
  return description;
}

// True for the records that ReadTail always keeps.
bool IsAlwaysKept(const TraceRecord& record) {
  switch (static_cast<RecordKind>(record.kind)) {
    case RecordKind::kCommunicator:
    case RecordKind::kCommunicatorEnd:
    case RecordKind::kInside:
    case RecordKind::kInsideInit:
      return true;
    default:
      return false;
  }
}

// Keeps up to twice as many records as are wanted, so that old ones are removed rarely.
class TailSink final : public RecordSink {
 public:
  explicit TailSink(uint64_t newest) : newest_(newest) {}
  Status BeginSection(const TraceSection& description, uint64_t /*records*/) override {
    trace_.sections.push_back(description);
    left_out_.emplace_back();
    others_ = 0;
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    std::vector<TraceRecord>& kept = trace_.sections.back().records;
    for (const TraceRecord& record : records) {
      kept.push_back(record);
      others_ += IsAlwaysKept(record) ? 0 : 1;
      if (others_ >= 2 * newest_) DropOld();
    }
    return {};
  }
  Status EndSection(uint64_t missing) override {
    trace_.sections.back().lost += missing;
    DropOld();
    trace_.sections.back().records.shrink_to_fit();
    return {};
  }
  Trace trace() && { return std::move(trace_); }
  std::vector<TransferCounts>& left_out() { return left_out_; }

 private:
  void DropOld() {
    TraceSection& section = trace_.sections.back();
    const uint64_t old = others_ - std::min(others_, newest_);
    uint64_t seen = 0;
    std::erase_if(section.records, [&](const TraceRecord& record) {
      const bool is_old = !IsAlwaysKept(record) && seen++ < old;
      if (is_old) CountTransfer(record);
      return is_old;
    });
    section.lost += old;
    others_ -= old;
  }

  void CountTransfer(const TraceRecord& record) {
    const auto collective = static_cast<Collective>(record.collective);
    if (record.kind == static_cast<uint16_t>(RecordKind::kPointToPoint) &&
        (collective == Collective::kSend || collective == Collective::kRecv))
      ++left_out_.back()[{record.communicator, collective, record.root_or_peer}];
  }

  const uint64_t newest_;
  Trace trace_;
  std::vector<TransferCounts> left_out_;
  uint64_t others_ = 0;  // records of the section that are not always kept
};

}  // namespace

Result<Trace> ReadTail(const RecordSource& source, uint64_t newest, std::vector<TransferCounts>* left_out) {
  TailSink tail(newest);
  DYNAMICCL_CHECK_OK(source.Pass(tail));
  if (left_out != nullptr) *left_out = std::move(tail.left_out());
  return std::move(tail).trace();
}

Status MemoryRecords::Pass(RecordSink& sink) const {
  for (const TraceSection& section : trace_.sections) {
    DYNAMICCL_CHECK_OK(sink.BeginSection(DescriptionOf(section), section.records.size()));
    DYNAMICCL_CHECK_OK(sink.Take(section.records));
    DYNAMICCL_CHECK_OK(sink.EndSection(0));
  }
  return {};
}

}  // namespace dynamiccl
