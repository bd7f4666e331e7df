// SPDX-License-Identifier: Apache-2.0
// Records are appended as calls come and sorted by time at the end. The sort is stable, so records of one
// moment keep their order.
#include "traces/import/rank_section.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dynamiccl {

RankSection::RankSection(std::string_view writer, uint32_t flags, int32_t stated_size)
    : stated_size_(stated_size) {
  section_.flags = kTraceImported | flags;
  section_.writer = writer;
  section_.closed = true;
}

std::optional<uint32_t> RankSection::Known(std::string_view key) const {
  const auto place = numbers_.find(key);
  return place == numbers_.end() ? std::nullopt : std::optional(place->second);
}

uint32_t RankSection::Communicator(std::string_view key, const CommunicatorInfo& info, int64_t now_ns) {
  if (const auto known = Known(key)) return *known;
  const auto number = static_cast<uint32_t>(numbers_.size());
  numbers_.emplace(key, number);
  infos_.push_back(info);
  next_call_numbers_.push_back(0);
  // The record is one nanosecond earlier than the communicator's first call, so that it precedes the call
  // after sorting.
  Append(CommunicatorRecord(number, info, now_ns - 1));
  return number;
}

void RankSection::AppendGroup(uint32_t communicator, std::span<const ImportedCall> calls) {
  const auto is_collective = [](const ImportedCall& call) {
    return call.issued.call.collective < Collective::kSendRecv;
  };
  const auto collectives = static_cast<size_t>(std::count_if(calls.begin(), calls.end(), is_collective));
  uint16_t next_index[2] = {};  // index 0: sends and receives, 1: collectives
  for (ImportedCall call : calls) {
    const bool collective = is_collective(call);
    CollectiveCall& shape = call.issued.call;
    shape.call_number = next_call_numbers_[communicator];
    shape.index_in_group = next_index[collective]++;
    shape.group_size = static_cast<uint16_t>(collective ? collectives : calls.size() - collectives);
    TraceRecord record = CallRecord(communicator, call.issued, call.stream);
    if (call.issued.duration_ns >= 0) {
      record.duration_ns = SaturatedDuration(call.issued.duration_ns);
      record.duration_source = static_cast<uint8_t>(DurationSource::kImported);
    }
    Append(record);
    if (call.chosen != kLeaveNcclAlone) AppendDecision(communicator, call);
  }
  next_call_numbers_[communicator] += collectives > 0;
  calls_ += calls.size();
}

void RankSection::AppendDecision(uint32_t communicator, const ImportedCall& call) {
  Append(DecisionRecord(communicator, call.issued.call,
                        {.asked_ns = call.issued.issued_ns, .config = call.chosen}));
}

void RankSection::AppendStep(const StepView& step) {
  Append(StepRecord(step));
}

void RankSection::Append(TraceRecord record) {
  Seal(record);
  section_.records.push_back(record);
}

void CountUnfilled(UnfilledFields& fields, std::string_view field, std::string_view instead, uint64_t count) {
  if (count == 0) return;
  auto place = fields.find(field);
  if (place == fields.end())
    place = fields.emplace(field, UnfilledField{std::string(field), 0, std::string(instead)}).first;
  place->second.count += count;
}

void RankSection::CountUntoldSize() {
  Unfilled("group size", stated_size_ > 0 ? fmt::format("{}, as stated", stated_size_) : "1");
  if (stated_size_ == 0) section_.flags |= kTraceGroupsUnknown;
}

void RankSection::OrderOnly(const std::string& instead) {
  section_.flags |= kTraceOrderOnly;
  Unfilled("issue time", instead, calls_);
}

TraceSection RankSection::Finish() {
  SortOnce(section_.records,
           [](const TraceRecord& a, const TraceRecord& b) { return a.issued_ns < b.issued_ns; });
  if (!section_.records.empty()) {
    section_.opened.monotonic_ns = section_.records.front().issued_ns;
    section_.closed_at.monotonic_ns = section_.records.back().issued_ns;
  }
  return std::move(section_);
}

std::vector<UnfilledField> RankSection::TakeUnfilled() const {
  std::vector<UnfilledField> fields;
  for (const auto& [name, field] : unfilled_) fields.push_back(field);
  return fields;
}

DataType UntoldType(uint64_t bytes) {
  return bytes % ElementBytes(DataType::kFloat32) == 0 ? DataType::kFloat32 : DataType::kUint8;
}

uint64_t IdOfName(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

}  // namespace dynamiccl
