// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_stream.h"

#include <algorithm>

#include "plugin/border/cuda_driver.h"
#include "plugin/border/no_throw.h"
#include "plugin/interpose/call_coverage.h"
#include "plugin/interpose/call_timing.h"
#include "plugin/interpose/communicator_creation.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/job_fail_point.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {
namespace {

// Only one group in this many checks whether a memory sample is due. The other groups do not read the clock.
constexpr uint32_t kGroupsBetweenLooks = 32;

bool IsAccepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// A trace only needs to distinguish streams, so 32 bits of the handle are enough. The lowest bits of a handle
// carry nothing, because handles are aligned.
uint32_t FoldStream(cudaStream_t stream) {
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  return static_cast<uint32_t>(handle >> 4 ^ handle >> 36);
}

// Fills in a fresh `pending`. Asks the clock and the driver only if traces or metrics record single calls, or
// if a guard receives them.
[[gnu::hot]] void Describe(const ApiArguments& facts, Communicator* communicator, cudaStream_t stream,
                           bool accounted, IssuingThread& thread, PendingCall& pending) {
  const CommunicatorInfo& info = communicator->identity.info;
  pending.communicator = communicator;
  pending.stream = FoldStream(stream);
  pending.captured = (accounted || communicator->switching.feed) && StreamIsCapturing(stream);
  CollectiveCall& call = pending.issued.call;
  call.communicator = info.id;
  call.collective = facts.collective;
  call.data_type = static_cast<DataType>(facts.data_type);
  call.op = ReduceOpOf(facts.op);
  call.n_ranks = info.n_ranks;
  const size_t element_bytes = ElementBytes(call.data_type);
  call.bytes = TotalBytes(facts.collective, facts.count, element_bytes, call.n_ranks);
  pending.counts = facts.issued_by == IssuedBy::kEveryRank && call.bytes > 0;
  pending.api_bytes = facts.count * element_bytes;
  pending.issued.rank = info.rank;
  pending.issued.root_or_peer = facts.root_or_peer;
  pending.issued.issued_ns = accounted ? thread.clock.Now() : 0;
  pending.issued.labelled_phase = thread.labels.phase;
  pending.issued.labelled_role = thread.labels.role;
  pending.issued.labelled_stage = thread.labels.stage;
}

bool IsRootOfParts(const PendingCall& pending) {
  return IsOneSided(pending.issued.call.collective) && pending.counts &&
         pending.issued.root_or_peer == pending.issued.rank;
}

// Adds the further calls of the root of a Gather or Scatter: the root exchanges one part with each rank.
void AddPartsOfRoot(PendingCall own, IssuingThread& thread) {
  const Collective collective = own.issued.call.collective;
  PendingCall other = own;
  other.counts = false;
  other.issued.call.collective = collective == Collective::kSend ? Collective::kRecv : Collective::kSend;
  for (int peer = 0; peer < own.issued.call.n_ranks; ++peer) {
    other.issued.root_or_peer = peer;
    thread.calls.push_back(other);
  }
}

// Returns the index of the communicator's group, which begins with the communicator's first call.
uint32_t GroupIndexOn(Communicator* communicator, std::vector<IssuedGroup>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].communicator == communicator) return static_cast<uint32_t>(i);
  }
  IssuedGroup& group = groups.emplace_back();
  group.communicator = communicator;
  group.facts.call_number = communicator->issuing.next_call;
  return static_cast<uint32_t>(groups.size() - 1);
}

void AddToGroup(const PendingCall& pending, IssuedGroup& group) {
  AddTiming(pending, group);
  group.counts |= pending.counts;
  group.facts.configured |= pending.configured;
  group.captured |= pending.captured;
  const CollectiveCall& call = pending.issued.call;
  if (!IsTunable(call)) return;
  const auto kind = static_cast<size_t>(call.collective);
  uint32_t& digest = group.facts.operands[kind];
  digest = AddOperands(digest, static_cast<int>(call.data_type), static_cast<int>(call.op));
  ++group.collectives[kind];
}

// A table with another policy brings its own structure LSTM. That LSTM begins at this call on all ranks,
// because its results depend only on the calls from this one on. Policies are compared by their digests, not
// by their addresses, which differ between ranks.
void RestartStructure(IssuingState& issuing, const std::shared_ptr<const Policy>& policy) {
  if (!policy || !issuing.structure || policy->sha256 == issuing.policy->sha256) return;
  issuing.structure->Restart(*policy);
  issuing.policy = policy;
}

// Sets the table that this group's decisions use.
void EnterTable(IssuedGroup& group) {
  const SwitchableTables* tables = group.communicator->switching.tables.get();
  if (tables == nullptr) return;
  if (!group.facts.simulated && group.counts) EnterVersion(*group.communicator, group.facts.call_number);
  group.table = tables->current();
}

// Sorts the pending calls into groups by communicator and numbers them, before the library asks its tuner
// about them.
[[gnu::hot]] void NumberCalls(IssuingThread& thread, bool simulated) {
  for (PendingCall& pending : thread.calls) {
    pending.group = GroupIndexOn(pending.communicator, thread.groups);
    IssuedGroup& group = thread.groups[pending.group];
    CollectiveCall& call = pending.issued.call;
    call.call_number = group.facts.call_number;
    AddToGroup(pending, group);
    // Collectives are numbered separately from sends and receives, because the latter differ between ranks.
    call.index_in_group = IsTunable(call) ? group.n_collectives++ : group.n_others++;
  }
  for (PendingCall& pending : thread.calls) {
    const IssuedGroup& group = thread.groups[pending.group];
    CollectiveCall& call = pending.issued.call;
    call.group_size = IsTunable(call) ? group.n_collectives : group.n_others;
  }
  for (IssuedGroup& group : thread.groups) {
    group.facts.simulated = simulated;
    Communicator& communicator = *group.communicator;
    if (!communicator.config.blocking) communicator.issuing.in_flight = group.facts;
    EnterTable(group);
  }
}

// Counts the call in the communicator's ledger, which says how many calls a tuner could change.
void CountCoverage(Mode mode, const IssuedGroup& group, PendingCall& pending) {
  pending.issued.coverage = CoverageOf(pending, mode, group);
  pending.communicator->issuing.ledger.CountCall(pending.issued.call, pending.issued.coverage);
}

// Remembers the size class that NCCL asked about, as the expectation for the next similar group.
void RememberSizeClass(const IssuedGroup& group, const PendingCall& pending) {
  const CollectiveCall& call = pending.issued.call;
  if (!IsTunable(call) || call.group_size < 2) return;
  const auto kind = static_cast<size_t>(call.collective);
  if ((group.marks.asked >> kind & 1) == 0) return;
  pending.communicator->issuing.size_classes.Update(call.collective, call.bytes,
                                                    group.marks.asked_about[kind]);
}

void RecordCall(Recorder& recorder, CollectiveTimes* times, const PendingCall& pending) {
  const Recorder::Slot slot =
      recorder.Append(CallRecord(pending.communicator->identity.number, pending.issued, pending.stream));
  if (pending.timed != nullptr) times->kernels().Attach(pending.timed, recorder, slot);
}

// The library accepted the group: records and counts it, and lets the structure agent step. Runs on the
// issuing thread before the program's call returns, so that the next decision finds a finished answer.
[[gnu::hot]] void CountGroup(ProcessRuntime& runtime, IssuingThread& thread) {
  Recorder* const recorder = runtime.recorder();
  const Mode mode = runtime.settings().mode;
  const bool accounted = runtime.accounts_for_calls();
  for (PendingCall& pending : thread.calls) {
    const IssuedGroup& group = thread.groups[pending.group];
    if (accounted) CountCoverage(mode, group, pending);
    if (recorder != nullptr) RecordCall(*recorder, runtime.times(), pending);
    if (pending.communicator->switching.times) RememberSizeClass(group, pending);
    StructureAgent* structure = pending.communicator->issuing.structure.get();
    if (structure == nullptr || !IsTunable(pending.issued.call)) continue;
    if (structure->Step(pending.issued.call).changed) pending.communicator->issuing.ledger.CountChange();
  }
  for (const IssuedGroup& group : thread.groups) {
    if (group.counts) ++group.communicator->issuing.next_call;
  }
}

// Shows in the trace that this thread is inside the library, in case the library never returns. The first
// call represents the whole group.
[[gnu::hot]] void MarkCallsInside(Recorder& recorder, const IssuingThread& thread) {
  const PendingCall& first = thread.calls.front();
  const CollectiveCall& call = first.issued.call;
  recorder.Enter(
      WordsOf({.since_ns = first.issued.issued_ns,
               .call_number = call.call_number,
               .bytes = call.bytes,
               .communicator = first.communicator->identity.number,
               .root_or_peer = static_cast<int16_t>(first.issued.root_or_peer),
               .group_size = static_cast<uint16_t>(std::min<size_t>(thread.calls.size(), UINT16_MAX)),
               .collective = static_cast<uint8_t>(call.collective),
               .data_type = static_cast<uint8_t>(call.data_type),
               .op = static_cast<uint8_t>(call.op),
               .what = static_cast<uint8_t>(InsideOf::kCall),
               .reserved = 0}));
}

// Shows in the trace that this thread is inside ncclGroupEnd, which may also initialise communicators.
void MarkGroupInside(ProcessRuntime& runtime, const IssuingThread& thread) {
  if (!thread.pending_communicators.empty())
    MarkInit(runtime, *thread.pending_communicators.back().communicator);
  Recorder* const recorder = runtime.recorder();
  if (recorder != nullptr && !thread.calls.empty()) MarkCallsInside(*recorder, thread);
}

// Samples the memory, at most once a second.
void SampleMemory(ProcessRuntime& runtime, IssuingThread& thread) {
  const int64_t now_ns = thread.clock.Now();
  const auto sizes = runtime.memory().SampleIfDue(now_ns);
  Recorder* const recorder = runtime.recorder();
  if (sizes && recorder != nullptr)
    recorder->Append(MemoryRecord({now_ns, sizes->free_bytes, sizes->total_bytes}));
}

// The library has returned from the outermost group.
void CloseGroup(ProcessRuntime& runtime, IssuingThread& thread, bool accepted) {
  if (Recorder* const recorder = runtime.recorder()) recorder->Leave();
  if (accepted) CountGroup(runtime, thread);
  if (++thread.ended % kGroupsBetweenLooks == 0 && runtime.samples_memory()) SampleMemory(runtime, thread);
  for (const IssuedGroup& group : thread.groups) group.communicator->in_flight_calls.Leave();
  thread.Clear();
}

}  // namespace

[[gnu::hot]] void EnterVersion(Communicator& communicator, uint64_t call_number) {
  SwitchableTables& tables = *communicator.switching.tables;
  if (!tables.Enter(call_number)) return;
  PassJobFailPoint(JobFailPoint::kFirstCall);
  RestartStructure(communicator.issuing, tables.policy());
}

[[gnu::hot]] ApiCall::ApiCall(const ApiArguments& facts, ncclComm_t comm, cudaStream_t stream,
                              bool configured) noexcept
    : runtime_(scope_.outermost() ? RuntimeInstance::GetIfWatching() : nullptr) {
  if (runtime_ == nullptr) return;
  Communicator* communicator = runtime_->communicators().Find(comm);
  thread_ = &IssuingThread::Current();
  if (communicator == nullptr || !communicator->in_flight_calls.Enter(thread_)) {
    runtime_ = nullptr;
    return;
  }
  NoThrow([&] { Note(facts, *communicator, comm, stream, configured); });
}

[[gnu::hot]] void ApiCall::Note(const ApiArguments& facts, Communicator& communicator, ncclComm_t comm,
                                cudaStream_t stream, bool configured) {
  if (!communicator.issuing.introduced) CompleteIdentity(*runtime_, communicator, comm);
  IssuingThread& thread = *thread_;
  const bool lone_call = !thread.inside_group();
  const size_t before = thread.calls.size();
  PendingCall& pending = thread.calls.emplace_back();
  pending.configured = configured;
  Describe(facts, &communicator, stream, runtime_->accounts_for_calls(), thread, pending);
  if (IsRootOfParts(pending)) AddPartsOfRoot(pending, thread);
  buffered_ = thread.calls.size() - before;
  if (lone_call) {
    NumberCalls(thread, false);
    if (Recorder* const recorder = runtime_->recorder()) MarkCallsInside(*recorder, thread);
  }
  if (CollectiveTimes* times = runtime_->times()) {
    // By this point a lone call has entered its own table. A call inside a group enters its table only at the
    // group's end, so the communicator still has the table of the previous group.
    PendingCall& last = thread.calls.back();
    OpenTimingWindow(*times, runtime_->settings().times, stream, lone_call, last);
    StampStep(stream, last);
    if (lone_call) AddTiming(last, thread.groups[last.group]);
  }
}

[[gnu::hot]] ncclResult_t ApiCall::Finish(ncclResult_t result) noexcept {
  if (runtime_ == nullptr) return result;
  if (CollectiveTimes* times = runtime_->times()) times->window().Leave();
  IssuingThread& thread = *thread_;
  if (!thread.inside_group()) {
    NoThrow([&] { CloseGroup(*runtime_, thread, IsAccepted(result)); });
  } else if (!IsAccepted(result)) {
    thread.calls.resize(thread.calls.size() - buffered_);
  }
  return result;
}

ncclResult_t GroupStarted(const ReentryScope& scope, ncclResult_t result) noexcept {
  if (scope.outermost() && result == ncclSuccess) ++IssuingThread::Current().depth;
  return result;
}

GroupEnd::GroupEnd(bool simulated) noexcept
    : thread_(IssuingThread::Current()),
      runtime_(scope_.outermost() ? RuntimeInstance::Get() : nullptr),
      simulated_(simulated) {
  if (runtime_ != nullptr && outermost())
    NoThrow([&] {
      NumberCalls(thread_, simulated);
      if (!simulated) MarkGroupInside(*runtime_, thread_);
    });
}

ncclResult_t GroupEnd::Finish(ncclResult_t result) noexcept {
  if (!scope_.outermost()) return result;
  if (outermost() && runtime_ != nullptr) {
    // Calls count even if memory for the new communicators is short.
    NoThrow([&] { RegisterPendingCommunicators(*runtime_, thread_.pending_communicators, result); });
    NoThrow([&] { CloseGroup(*runtime_, thread_, IsAccepted(result) && !simulated_); });
  }
  if (thread_.depth > 0) --thread_.depth;
  return result;
}

}  // namespace dynamiccl
