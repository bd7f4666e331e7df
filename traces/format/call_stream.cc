// SPDX-License-Identifier: Apache-2.0
#include "traces/format/call_stream.h"

namespace dynamiccl {
namespace {

bool IsKind(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

}  // namespace

void CallStream::Take(const TraceRecord& record) {
  ++records_;
  if (IsKind(record, RecordKind::kCollective) || IsKind(record, RecordKind::kPointToPoint))
    TakeCall(record);
  else if (decisions_ && IsKind(record, RecordKind::kDecision))
    TakeDecision(record);
  else if (IsKind(record, RecordKind::kStep))
    step_ = static_cast<int64_t>(record.call_number);
}

void CallStream::TakeCall(const TraceRecord& record) {
  if (!communicators_.contains(record.communicator)) return;
  waiting_.push_back({record, step_, std::nullopt, std::nullopt});
  if (!decisions_) return PassOn();
  // Sends and receives are numbered separately in a group and have no decision.
  if (IsKind(record, RecordKind::kCollective))
    answers_[KeyOf(record)].last_call = passed_ + waiting_.size() - 1;
  if (waiting_.size() > kWaitingCalls) PassOn();
}

void CallStream::TakeDecision(const TraceRecord& record) {
  const auto [found, is_new] = answers_.try_emplace(KeyOf(record));
  if (is_new) orphans_.push_back({found->first, records_});
  found->second.decision = record;
  if (DecisionOf(record).recognised()) found->second.recognised = record;
  DropOldOrphans();
}

void CallStream::DropOldOrphans() {
  while (!orphans_.empty() && orphans_.front().records + 2 * kWaitingCalls < records_) {
    const auto found = answers_.find(orphans_.front().key);
    if (found != answers_.end() && !found->second.last_call) answers_.erase(found);
    orphans_.pop_front();
  }
}

// Passes on the call that has waited longest. If several calls have the same key, only the last one gets the
// decision, but each of them gets what the policy recognised.
void CallStream::PassOn() {
  StreamedCall& call = waiting_.front();
  const auto found =
      IsKind(call.record, RecordKind::kCollective) ? answers_.find(KeyOf(call.record)) : answers_.end();
  if (found != answers_.end()) {
    call.recognised = found->second.recognised;
    if (found->second.last_call == passed_) {
      call.decision = found->second.decision;
      answers_.erase(found);
    }
  }
  consumer_(call);
  waiting_.pop_front();
  ++passed_;
}

void CallStream::Finish() {
  while (!waiting_.empty()) PassOn();
}

TraceCall DecodedCall(const StreamedCall& call, const CommunicatorInfo& communicator) {
  TraceCall decoded = DecodedCall(call.record, communicator, call.step);
  if (call.decision) decoded.decision = DecisionOf(*call.decision);
  return decoded;
}

}  // namespace dynamiccl
