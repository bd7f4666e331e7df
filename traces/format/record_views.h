// SPDX-License-Identifier: Apache-2.0
// Converts a trace's records to values of the vocabulary in src/collective and back. Each XRecord function
// creates a record of kind X, and each XOf function decodes one. The file is header-only, so that code inside
// a job and readers and importers outside share it. Creating a record allocates nothing. The records are not
// sealed: the code that stores a record calls Seal.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/collective/collective_call.h"
#include "src/collective/collective_config.h"
#include "src/collective/communicator_info.h"
#include "traces/format/trace_header.h"
#include "traces/format/trace_record.h"

namespace dynamiccl {

// A tuner's answer to NCCL's question about the call with this communicator, call number and index in group.
struct DecisionView {
  int64_t asked_ns = 0;
  CollectiveConfig config;  // the tuner's answer
  DecidedBy decided_by = DecidedBy::kNccl;
  uint8_t table_version = 0;
  // The role that the policy's LSTM recognised before the call; unknown without a policy.
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;

  bool recognised() const {
    return role != Role::kUnknown || phase != Phase::kUnknown || stage != ZeroStage::kUnknown;
  }

  friend bool operator==(const DecisionView&, const DecisionView&) = default;
};

// The program reported where it is in training.
struct StepView {
  int64_t marked_ns = 0;
  uint64_t step = 0;
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;

  friend bool operator==(const StepView&, const StepView&) = default;
};

// The program reported how many samples this rank processes in the step that begins.
struct SamplesView {
  int64_t marked_ns = 0;
  uint64_t samples = 0;

  friend bool operator==(const SamplesView&, const SamplesView&) = default;
};

// Says how much memory the device or the host has left, as the program reported it or as it was sampled.
struct MemoryView {
  int64_t marked_ns = 0;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;

  friend bool operator==(const MemoryView&, const MemoryView&) = default;
};

// The part of a key's transfer time that the program waits for, as measured by the communicator's guard
// (src/decision/guard/waited_shares.h).
struct WaitedShareView {
  int64_t found_ns = 0;
  uint32_t communicator = 0;  // the section's own number of the communicator
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // smallest size of the size class
  Role role = Role::kUnknown;
  double share = 0;  // 0: hidden behind computation, 1: fully exposed

  friend bool operator==(const WaitedShareView&, const WaitedShareView&) = default;
};

// A call, or the creation of a communicator, that had not returned when the trace was read.
struct InsideView {
  int64_t since_ns = 0;
  bool init = false;          // inside the creation of a communicator, not inside a call
  uint32_t communicator = 0;  // for a call: the section's own number of its communicator
  CommunicatorInfo created;   // for an init: id, rank and number of ranks
  CollectiveCall call;        // the group's first call; its group_size counts all calls
  int32_t root_or_peer = -1;
};

// Puts the phase into bits 0 to 2 and the role into bits 3 to 5.
inline uint8_t PackLabels(Phase phase, Role role) {
  return static_cast<uint8_t>((static_cast<unsigned>(phase) & 7u) |
                              ((static_cast<unsigned>(role) & 7u) << 3));
}
// Labels of later versions, which this build does not know, become kUnknown.
inline Phase LabelledPhase(const TraceRecord& record) {
  const unsigned phase = record.labels & 7u;
  return phase < kPhases ? static_cast<Phase>(phase) : Phase::kUnknown;
}
inline Role LabelledRole(const TraceRecord& record) {
  const unsigned role = (record.labels >> 3) & 7u;
  return role < kRoles ? static_cast<Role>(role) : Role::kUnknown;
}
inline ZeroStage LabelledStage(const TraceRecord& record) {
  return record.labelled_stage < kZeroStages ? static_cast<ZeroStage>(record.labelled_stage)
                                             : ZeroStage::kUnknown;
}

// A record in which no kind's fields are set: unknown config and labels, no root.
inline TraceRecord EmptyRecord(RecordKind kind, int64_t now_ns) {
  TraceRecord record{};
  record.issued_ns = now_ns;
  record.kind = static_cast<uint16_t>(kind);
  record.root_or_peer = -1;
  record.algorithm = record.protocol = -1;
  record.labelled_stage = static_cast<uint8_t>(ZeroStage::kUnknown);
  return record;
}

// `communicator` is the number that this process gave the communicator, from 0; `info.id` is equal on all
// ranks.
inline TraceRecord CommunicatorRecord(uint32_t communicator, const CommunicatorInfo& info, int64_t now_ns) {
  TraceRecord record = EmptyRecord(RecordKind::kCommunicator, now_ns);
  record.communicator = communicator;
  record.bytes = info.id;
  record.root_or_peer = static_cast<int16_t>(info.rank);
  record.index_in_group = static_cast<uint16_t>(info.n_nodes);
  record.group_size = static_cast<uint16_t>(info.n_ranks);
  return record;
}

inline CommunicatorInfo CommunicatorOf(const TraceRecord& record) {
  return {record.bytes, record.root_or_peer, record.group_size, record.index_in_group};
}

// Builds a record in 64-bit words that stay in registers. A recorder copies the record immediately. If its
// bytes were stored one by one, reading them together would have to wait until they have reached the cache.
class RecordWords {
 public:
  // Sets a field. Set each field at most once; a field must not cross a word boundary.
  template <typename T>
  constexpr RecordWords& Put(size_t offset, T value) {
    const auto bits = static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
    words_[offset / 8] |= bits << (offset % 8 * 8);
    return *this;
  }
  // Stores the record word by word, in the same units in which it is read.
  TraceRecord record() const {
    TraceRecord record;
    for (size_t i = 0; i < words_.size(); ++i)
      std::memcpy(reinterpret_cast<char*>(&record) + i * sizeof(uint64_t), &words_[i], sizeof(uint64_t));
    return record;
  }

 private:
  static_assert(std::endian::native == std::endian::little, "so is the file");
  std::array<uint64_t, sizeof(TraceRecord) / 8> words_{};
};

// An InsideMark in 64-bit words that stay in registers, as in RecordWords. `what` is in the last word, which
// is stored last.
using InsideWords = std::array<uint64_t, sizeof(InsideMark) / 8>;
inline InsideWords WordsOf(const InsideMark& mark) {
  const auto wide = [](auto value) {
    return static_cast<uint64_t>(static_cast<std::make_unsigned_t<decltype(value)>>(value));
  };
  static_assert(offsetof(InsideMark, communicator) == 24 && offsetof(InsideMark, what) == 35);
  return {wide(mark.since_ns), mark.call_number, mark.bytes,
          wide(mark.communicator) | wide(mark.root_or_peer) << 32 | wide(mark.group_size) << 48,
          wide(mark.collective) | wide(mark.data_type) << 8 | wide(mark.op) << 16 | wide(mark.what) << 24};
}

// `call.communicator` and `call.n_ranks` are not stored: the Communicator record has them.
inline TraceRecord CallRecord(uint32_t communicator, const IssuedCall& issued, uint32_t stream = 0) {
  using R = TraceRecord;
  const CollectiveCall& call = issued.call;
  const bool peer = call.collective >= Collective::kSendRecv;
  const RecordKind kind = peer ? RecordKind::kPointToPoint : RecordKind::kCollective;
  return RecordWords()
      .Put(offsetof(R, issued_ns), issued.issued_ns)
      .Put(offsetof(R, call_number), call.call_number)
      .Put(offsetof(R, bytes), call.bytes)
      .Put(offsetof(R, communicator), communicator)
      .Put(offsetof(R, stream), stream)
      .Put(offsetof(R, kind), static_cast<uint16_t>(kind))
      .Put(offsetof(R, root_or_peer), static_cast<int16_t>(issued.root_or_peer))
      .Put(offsetof(R, index_in_group), call.index_in_group)
      .Put(offsetof(R, group_size), call.group_size)
      .Put(offsetof(R, collective), static_cast<uint8_t>(call.collective))
      .Put(offsetof(R, data_type), static_cast<uint8_t>(call.data_type))
      .Put(offsetof(R, op), static_cast<uint8_t>(call.op))
      .Put(offsetof(R, algorithm), int8_t{-1})
      .Put(offsetof(R, protocol), int8_t{-1})
      .Put(offsetof(R, labels), PackLabels(issued.labelled_phase, issued.labelled_role))
      .Put(offsetof(R, labelled_stage), static_cast<uint8_t>(issued.labelled_stage))
      .Put(offsetof(R, coverage), static_cast<uint8_t>(issued.coverage))
      .record();
}

// Returns how the call was covered; kUnknown for values of later versions.
inline Coverage CoverageOf(const TraceRecord& record) {
  return record.coverage < kCoverages ? static_cast<Coverage>(record.coverage) : Coverage::kUnknown;
}

// `info` is the communicator of the record.
inline IssuedCall IssuedCallOf(const TraceRecord& record, const CommunicatorInfo& info) {
  IssuedCall issued;
  issued.call = {info.id,
                 record.call_number,
                 record.bytes,
                 static_cast<Collective>(record.collective),
                 static_cast<DataType>(record.data_type),
                 static_cast<ReduceOp>(record.op),
                 record.index_in_group,
                 record.group_size,
                 info.n_ranks};
  issued.rank = info.rank;
  issued.root_or_peer = record.root_or_peer;
  issued.issued_ns = record.issued_ns;
  issued.duration_ns = record.duration_source == 0 ? -1 : static_cast<int64_t>(record.duration_ns);
  issued.labelled_role = LabelledRole(record);
  issued.labelled_phase = LabelledPhase(record);
  issued.labelled_stage = LabelledStage(record);
  issued.coverage = CoverageOf(record);
  return issued;
}

// The answer to the tuner's question about `call`.
inline TraceRecord DecisionRecord(uint32_t communicator, const CollectiveCall& call,
                                  const DecisionView& decision) {
  TraceRecord record = EmptyRecord(RecordKind::kDecision, decision.asked_ns);
  record.communicator = communicator;
  record.call_number = call.call_number;
  record.bytes = call.bytes;
  record.index_in_group = call.index_in_group;
  record.group_size = call.group_size;
  record.collective = static_cast<uint8_t>(call.collective);
  record.algorithm = static_cast<int8_t>(decision.config.algorithm);
  record.protocol = static_cast<int8_t>(decision.config.protocol);
  record.channels = decision.config.channels;
  record.decided_by = static_cast<uint8_t>(decision.decided_by);
  record.table_version = decision.table_version;
  record.labels = PackLabels(decision.phase, decision.role);
  record.labelled_stage = static_cast<uint8_t>(decision.stage);
  return record;
}

inline DecisionView DecisionOf(const TraceRecord& record) {
  const CollectiveConfig config{static_cast<Algorithm>(record.algorithm),
                                static_cast<Protocol>(record.protocol), record.channels};
  return {record.issued_ns,
          config,
          static_cast<DecidedBy>(record.decided_by),
          record.table_version,
          LabelledRole(record),
          LabelledPhase(record),
          LabelledStage(record)};
}

inline TraceRecord StepRecord(const StepView& step) {
  TraceRecord record = EmptyRecord(RecordKind::kStep, step.marked_ns);
  record.call_number = step.step;
  record.labels = PackLabels(step.phase, Role::kUnknown);
  record.labelled_stage = static_cast<uint8_t>(step.stage);
  return record;
}

inline StepView StepOf(const TraceRecord& record) {
  return {record.issued_ns, record.call_number, LabelledPhase(record), LabelledStage(record)};
}

// The record's field `call_number` holds the number of samples.
inline TraceRecord SamplesRecord(const SamplesView& mark) {
  TraceRecord record = EmptyRecord(RecordKind::kSamples, mark.marked_ns);
  record.call_number = mark.samples;
  return record;
}

inline SamplesView SamplesOf(const TraceRecord& record) {
  return {record.issued_ns, record.call_number};
}

// The record's field `bytes` holds the free bytes, and `call_number` holds all bytes of the device.
inline TraceRecord MemoryRecord(const MemoryView& memory) {
  TraceRecord record = EmptyRecord(RecordKind::kMemory, memory.marked_ns);
  record.bytes = memory.free_bytes;
  record.call_number = memory.total_bytes;
  return record;
}

inline MemoryView MemoryOf(const TraceRecord& record) {
  return {record.issued_ns, record.bytes, record.call_number};
}

// The record's field root_or_peer holds the share, in thousandths.
inline TraceRecord WaitedShareRecord(const WaitedShareView& waited) {
  TraceRecord record = EmptyRecord(RecordKind::kWaitedShare, waited.found_ns);
  record.communicator = waited.communicator;
  record.collective = static_cast<uint8_t>(waited.collective);
  record.bytes = waited.bytes;
  record.labels = PackLabels(Phase::kUnknown, waited.role);
  record.root_or_peer = static_cast<int16_t>(std::lround(std::clamp(waited.share, 0.0, 1.0) * 1000));
  return record;
}

inline WaitedShareView WaitedShareOf(const TraceRecord& record) {
  return {record.issued_ns, record.communicator,  static_cast<Collective>(record.collective),
          record.bytes,     LabelledRole(record), record.root_or_peer / 1000.0};
}

// Converts a mark to a record. The mark must not be empty (InsideOf::kNothing).
inline TraceRecord InsideRecord(const InsideMark& mark) {
  const bool init = mark.what == static_cast<uint8_t>(InsideOf::kInit);
  TraceRecord record = EmptyRecord(init ? RecordKind::kInsideInit : RecordKind::kInside, mark.since_ns);
  record.call_number = mark.call_number;
  record.bytes = mark.bytes;
  record.communicator = mark.communicator;
  record.root_or_peer = mark.root_or_peer;
  record.group_size = mark.group_size;
  record.collective = mark.collective;
  record.data_type = mark.data_type;
  record.op = mark.op;
  return record;
}

inline InsideView InsideOfRecord(const TraceRecord& record) {
  InsideView view;
  view.since_ns = record.issued_ns;
  view.init = record.kind == static_cast<uint16_t>(RecordKind::kInsideInit);
  view.communicator = record.communicator;
  view.root_or_peer = record.root_or_peer;
  if (view.init) {
    view.created = {record.bytes, record.root_or_peer, record.group_size, 0};
    return view;
  }
  view.call.call_number = record.call_number;
  view.call.bytes = record.bytes;
  view.call.collective = static_cast<Collective>(record.collective);
  view.call.data_type = static_cast<DataType>(record.data_type);
  view.call.op = static_cast<ReduceOp>(record.op);
  view.call.group_size = record.group_size;
  return view;
}

// Nanoseconds as a record holds them. Durations saturate: 4.29 s is far beyond any collective that is not
// stuck.
inline uint32_t SaturatedDuration(int64_t nanoseconds) {
  return static_cast<uint32_t>(std::clamp<int64_t>(nanoseconds, 0, UINT32_MAX));
}

}  // namespace dynamiccl
