// SPDX-License-Identifier: Apache-2.0
// Three passes over the records: communicators first, then calls and marks in order, then the tuner's
// answers.
#include "traces/format/trace_calls.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <tuple>

#include "src/base/byte_codec.h"
#include "traces/format/operation_hasher.h"

namespace dynamiccl {
namespace {

// Communicator, call number, index in group.
using CallKey = std::tuple<uint32_t, uint64_t, uint16_t>;

// The key by which a call and the tuner's answers to it are joined.
CallKey KeyOf(const TraceRecord& record) {
  return {record.communicator, record.call_number, record.index_in_group};
}

bool IsKind(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

// The result while it is being built.
struct Builder {
  SectionCalls result;
  bool has_decisions = false;
  std::map<CallKey, size_t> position;  // index in result.calls; empty if there are no decisions
  int64_t step = -1;

  // Adds a call, if its communicator is known.
  void TakeCall(const TraceRecord& record) {
    const auto communicator = result.communicators.find(record.communicator);
    if (communicator == result.communicators.end()) {
      ++result.without_communicator;
      return;
    }
    // Sends and receives are numbered separately in a group and have no decision. If they were entered here,
    // they would hide the group's collectives.
    if (has_decisions && IsKind(record, RecordKind::kCollective))
      position.insert_or_assign(position.end(), KeyOf(record), result.calls.size());
    result.calls.push_back(DecodedCall(record, communicator->second, step));
  }

  // Joins an answer with its call; the last answer counts.
  void TakeDecision(const TraceRecord& record) {
    const auto found = position.find(KeyOf(record));
    if (found == position.end())
      ++result.without_call;
    else
      result.calls[found->second].decision = DecisionOf(record);
  }

  // Sets the step of all later calls, until the next mark.
  void TakeStep(const TraceRecord& record) {
    result.steps.push_back(StepOf(record));
    step = static_cast<int64_t>(record.call_number);
  }
};

// True for the kinds of records that are known but add nothing in this pass.
bool IsSilent(const TraceRecord& record) {
  return IsKind(record, RecordKind::kCommunicator) || IsKind(record, RecordKind::kCommunicatorEnd) ||
         IsKind(record, RecordKind::kDecision);
}

}  // namespace

TraceCall DecodedCall(const TraceRecord& record, const CommunicatorInfo& communicator, int64_t step) {
  return {.issued = IssuedCallOf(record, communicator),
          .communicator = record.communicator,
          .stream = record.stream,
          .duration_source = static_cast<DurationSource>(record.duration_source),
          .decision = std::nullopt,
          .step = step};
}

std::map<uint32_t, CommunicatorInfo> CommunicatorsOf(const TraceSection& section) {
  std::map<uint32_t, CommunicatorInfo> communicators;
  for (const TraceRecord& record : section.records)
    if (IsKind(record, RecordKind::kCommunicator))
      communicators[record.communicator] = CommunicatorOf(record);
  return communicators;
}

SectionCalls CallsOf(const TraceSection& section) {
  Builder builder;
  // A process never uses a communicator's number twice, so all communicators may be read first.
  builder.result.communicators = CommunicatorsOf(section);
  size_t calls = 0;
  for (const TraceRecord& record : section.records) {
    builder.has_decisions |= IsKind(record, RecordKind::kDecision);
    calls += IsKind(record, RecordKind::kCollective) || IsKind(record, RecordKind::kPointToPoint) ? 1 : 0;
  }
  // Traces have millions of calls. A vector that grew step by step would copy them and touch twice the
  // memory.
  builder.result.calls.reserve(calls);
  for (const TraceRecord& record : section.records) {
    if (IsKind(record, RecordKind::kCollective) || IsKind(record, RecordKind::kPointToPoint))
      builder.TakeCall(record);
    else if (IsKind(record, RecordKind::kStep))
      builder.TakeStep(record);
    else if (IsKind(record, RecordKind::kMemory))
      builder.result.memory.push_back(MemoryOf(record));
    else if (IsKind(record, RecordKind::kSamples))
      builder.result.samples.push_back(SamplesOf(record));
    else if (IsKind(record, RecordKind::kInside) || IsKind(record, RecordKind::kInsideInit))
      builder.result.inside.push_back(InsideOfRecord(record));
    else if (IsKind(record, RecordKind::kWaitedShare))
      builder.result.waited_shares.push_back(WaitedShareOf(record));
    else if (!IsSilent(record))
      ++builder.result.unknown_kinds;
  }
  // Inside a group the tuner may be asked before the last call of the group is recorded. So answers are
  // joined with calls after all calls have been read.
  for (const TraceRecord& record : section.records) {
    if (IsKind(record, RecordKind::kDecision)) builder.TakeDecision(record);
  }
  return std::move(builder.result);
}

std::vector<SectionCalls> CallsOf(const Trace& trace) {
  std::vector<SectionCalls> sections;
  for (const TraceSection& section : trace.sections) sections.push_back(CallsOf(section));
  return sections;
}

CallInterval CallIntervals::Take(uint32_t communicator, uint32_t stream, int64_t issued_ns,
                                 int64_t duration_ns) {
  const auto [last, is_first] = ends_.try_emplace({communicator, stream}, INT64_MIN);
  const int64_t start = std::max(issued_ns, last->second);
  last->second = start + std::max<int64_t>(0, duration_ns);
  return {start, last->second};
}

void OperationHasher::Take(uint32_t communicator, const IssuedCall& issued) {
  const auto [place, is_new] = order_.try_emplace(communicator, by_communicator_.size());
  if (is_new) by_communicator_.emplace_back();
  const CollectiveCall& call = issued.call;
  by_communicator_[place->second].push_back({call.call_number, call.bytes, issued.root_or_peer,
                                             call.index_in_group, call.collective, call.data_type, call.op});
}

uint64_t OperationHasher::Finish() {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  ByteWriter bytes;
  for (auto& calls : by_communicator_) {
    std::stable_sort(calls.begin(), calls.end(), [](const Operation& a, const Operation& b) {
      return std::tie(a.call_number, a.index_in_group) < std::tie(b.call_number, b.index_in_group);
    });
    for (const Operation& one : calls) {
      bytes.buffer().clear();
      bytes.Put(one.call_number - calls.front().call_number);
      bytes.Put(one.index_in_group);
      bytes.Put(one.collective);
      bytes.Put(one.data_type);
      bytes.Put(one.op);
      bytes.Put(one.bytes);
      bytes.Put(one.root_or_peer);
      XXH3_64bits_update(&state, bytes.buffer().data(), bytes.buffer().size());
    }
  }
  order_.clear();
  by_communicator_.clear();
  return XXH3_64bits_digest(&state);
}

uint64_t OperationHash(const SectionCalls& section) {
  OperationHasher hasher;
  for (const TraceCall& call : section.calls) hasher.Take(call.communicator, call.issued);
  return hasher.Finish();
}

}  // namespace dynamiccl
