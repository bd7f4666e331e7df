// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "plugin/interpose/communicator_births.h"
#include "plugin/interpose/stream_capture.h"
#include "plugin/runtime/c_boundary.h"
#include "src/base/interpolated_clock.h"
#include "src/base/job_fail_point.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {
namespace {

// Whether somebody wants to know how long a call takes.
enum class WhyTimed : uint8_t { kNotAtAll, kOnSuspicion, kByPlan };

struct BufferedCall {
  Communicator* communicator = nullptr;
  IssuedCall issued;
  bool counts = false;
  bool configured = false;
  uint32_t stream = 0;
  uint64_t api_bytes = 0;  // of the count given to the API
  void* timed = nullptr;   // handle of KernelTimes
  WhyTimed why_timed = WhyTimed::kNotAtAll;
  bool captured = false;
  uint32_t flight = 0;  // index of the group's part on the communicator, once numbered
};

// What one thread has issued since its outermost GroupStart; the vectors keep their memory from group to
// group.
struct ThreadCalls {
  int depth = 0;
  CallLabels labels;
  InterpolatedClock clock;
  std::vector<BufferedCall> calls;
  std::vector<GroupInFlight> in_flight;
  std::vector<UnbornCommunicator> unborn;
};

// Functions of a call take it as an argument: every look at it by its name asks whether it exists already.
thread_local ThreadCalls t_calls;

bool Taken(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// Streams are only told apart in a trace, so 32 bits of the handle do; its low bits are alignment.
uint32_t FoldStream(cudaStream_t stream) {
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  return static_cast<uint32_t>(handle >> 4 ^ handle >> 36);
}

// An all-to-all's total is that of a rank's parts; replaying divides it again.
uint64_t BytesOf(const ApiFacts& facts, size_t element_bytes, int n_ranks) {
  const uint64_t total = TotalBytes(facts.collective, facts.count, element_bytes, n_ranks);
  return facts.collective == Collective::kSendRecv ? total * static_cast<uint64_t>(n_ranks) : total;
}

// `buffered` is fresh. What only traces and metrics hold is asked for only where there are such.
[[gnu::hot]] void Describe(const ApiFacts& facts, Communicator* communicator, cudaStream_t stream,
                           bool accounted, ThreadCalls& thread, BufferedCall& buffered) {
  buffered.communicator = communicator;
  buffered.stream = FoldStream(stream);
  buffered.captured = (accounted || communicator->feed) && StreamIsCapturing(stream);
  CollectiveCall& call = buffered.issued.call;
  call.communicator = communicator->info.id;
  call.collective = facts.collective;
  call.data_type = static_cast<DataType>(facts.data_type);
  call.op = static_cast<ReduceOp>(facts.op);
  call.n_ranks = communicator->info.n_ranks;
  const size_t element_bytes = ElementBytes(call.data_type);
  call.bytes = BytesOf(facts, element_bytes, call.n_ranks);
  buffered.counts = facts.issued_by == IssuedBy::kEveryRank && call.bytes > 0;
  buffered.api_bytes = facts.count * element_bytes;
  buffered.issued.rank = communicator->info.rank;
  buffered.issued.root_or_peer = facts.root_or_peer;
  buffered.issued.issued_ns = accounted ? thread.clock.Now() : 0;
  buffered.issued.labelled_phase = thread.labels.phase;
  buffered.issued.labelled_role = thread.labels.role;
  buffered.issued.labelled_stage = thread.labels.stage;
}

// Has a choice of algorithm, so it is the structure's and the tuner's business.
bool Tunable(const CollectiveCall& call) {
  return call.collective < Collective::kSendRecv && call.bytes > 0;
}

bool IsRootOfParts(const BufferedCall& buffered) {
  const Collective collective = buffered.issued.call.collective;
  return (collective == Collective::kSend || collective == Collective::kRecv) && buffered.counts &&
         buffered.issued.root_or_peer == buffered.issued.rank;
}

// What the root of a Gather or Scatter does beside its part as one of the ranks.
void BufferRootsPart(BufferedCall own) {
  const Collective collective = own.issued.call.collective;
  BufferedCall other = own;
  other.counts = false;
  other.issued.call.collective = collective == Collective::kSend ? Collective::kRecv : Collective::kSend;
  for (int peer = 0; peer < own.issued.call.n_ranks; ++peer) {
    other.issued.root_or_peer = peer;
    t_calls.calls.push_back(other);
  }
}

uint32_t FlightOn(Communicator* communicator, std::vector<GroupInFlight>& in_flight) {
  for (size_t i = 0; i < in_flight.size(); ++i) {
    if (in_flight[i].communicator == communicator) return static_cast<uint32_t>(i);
  }
  GroupInFlight& entry = in_flight.emplace_back();
  entry.communicator = communicator;
  entry.facts.call_number = communicator->next_call;
  return static_cast<uint32_t>(in_flight.size() - 1);
}

void AddTiming(GroupInFlight& entry, const BufferedCall& buffered) {
  entry.timed |= buffered.why_timed != WhyTimed::kNotAtAll;
  entry.on_suspicion |= buffered.why_timed == WhyTimed::kOnSuspicion;
}

void AddTo(GroupInFlight& entry, const BufferedCall& buffered) {
  AddTiming(entry, buffered);
  entry.counts |= buffered.counts;
  entry.facts.configured |= buffered.configured;
  entry.captured |= buffered.captured;
  const CollectiveCall& call = buffered.issued.call;
  if (!Tunable(call)) return;
  const auto kind = static_cast<size_t>(call.collective);
  uint32_t& digest = entry.facts.operands[kind];
  digest = AddOperands(digest, static_cast<int>(call.data_type), static_cast<int>(call.op));
  ++entry.collectives[kind];
}

// A table of another policy brings its structure LSTM, which begins at this call on all ranks: what it
// recognises is a function of the calls from here on. Policies are told apart by what they are, not by where
// a rank happens to keep them.
void TakeUpStructure(Communicator& communicator, const std::shared_ptr<const Policy>& policy) {
  if (!policy || !communicator.structure || policy->sha256 == communicator.policy->sha256) return;
  communicator.structure->Restart(*policy);
  communicator.policy = policy;
}

// The table that this group's decisions use. May wait, at the boundary of a switch, for a verdict that
// depends on control threads alone.
void EnterTable(GroupInFlight& entry) {
  SwitchableTables* tables = entry.communicator->tables.get();
  if (tables == nullptr) return;
  if (!entry.facts.simulated && entry.counts && tables->Enter(entry.facts.call_number)) {
    PassJobFailPoint(JobFailPoint::kFirstCall);
    TakeUpStructure(*entry.communicator, tables->policy());
  }
  entry.table = tables->current();
}

// Gives the buffered calls their numbers, before the library asks its tuner about them.
[[gnu::hot]] void NumberCalls(ThreadCalls& thread, bool simulated) {
  for (BufferedCall& buffered : thread.calls) {
    buffered.flight = FlightOn(buffered.communicator, thread.in_flight);
    GroupInFlight& entry = thread.in_flight[buffered.flight];
    CollectiveCall& call = buffered.issued.call;
    call.call_number = entry.facts.call_number;
    AddTo(entry, buffered);
    // Collectives and the rest are numbered apart: what a rank sends and receives is its own.
    call.index_in_group = Tunable(call) ? entry.n_collectives++ : entry.n_others++;
  }
  for (BufferedCall& buffered : thread.calls) {
    const GroupInFlight& entry = thread.in_flight[buffered.flight];
    CollectiveCall& call = buffered.issued.call;
    call.group_size = Tunable(call) ? entry.n_collectives : entry.n_others;
  }
  for (GroupInFlight& entry : thread.in_flight) {
    entry.facts.simulated = simulated;
    if (!entry.communicator->blocking) entry.communicator->in_flight = entry.facts;
    EnterTable(entry);
  }
}

// The key that NCCL is going to ask about.
TableKey ExpectedKeyOf(const BufferedCall& buffered) {
  const CollectiveCall& call = buffered.issued.call;
  const Communicator& communicator = *buffered.communicator;
  TableKey key{call.collective, {}, RecognisedRole(communicator, call.collective, call.bytes)};
  key.size_class = t_calls.depth == 0 ? SizeClassOf(call.bytes)
                                      : communicator.expected_sizes.Of(call.collective, call.bytes);
  return key;
}

WhyTimed WhyToTime(const BufferedCall& buffered, Timed times) {
  if (!Tunable(buffered.issued.call)) return WhyTimed::kNotAtAll;
  if (times == Timed::kAll) return WhyTimed::kByPlan;
  const Communicator& communicator = *buffered.communicator;
  const uint64_t number = communicator.next_call;
  const DecisionEngine* const engine = communicator.times ? communicator.tables->current().engine : nullptr;
  const PlannedTable* const plan = engine == nullptr ? nullptr : engine->plan();
  if (plan == nullptr) return InTimingWindow(number) ? WhyTimed::kByPlan : WhyTimed::kNotAtAll;
  if (plan->TimesNext(ExpectedKeyOf(buffered))) return WhyTimed::kByPlan;
  return communicator.times->TimesAll(number) ? WhyTimed::kOnSuspicion : WhyTimed::kNotAtAll;
}

// Opens the profiler's window for the call, where this rank's times are of use.
void OpenWindow(CollectiveTimes& times, Timed wanted, cudaStream_t stream, BufferedCall& buffered) {
  times.CountCall();
  const WhyTimed why = WhyToTime(buffered, wanted);
  if (why == WhyTimed::kNotAtAll || StreamIsCapturing(stream)) return;
  buffered.why_timed = why;
  const TimesReport* const report = buffered.communicator->times.get();
  if (report == nullptr || report->tells() || wanted == Timed::kAll) times.window().Enter();
}

// A group of broadcasts from several roots is asked about as an AllGather.
uint8_t QuestionsAbout(Collective collective) {
  const auto bit = [](Collective of) { return static_cast<uint8_t>(1u << static_cast<unsigned>(of)); };
  return collective == Collective::kBroadcast ? bit(collective) | bit(Collective::kAllGather)
                                              : bit(collective);
}

// NCCL leaves a tuner out for two things (src/enqueue.cc, ncclPrepareTasks): collectives of the copy engine,
// of which AllGather is the only one that could be tuned, and symmetric kernels.
Coverage CoverageWithoutQuestion(Collective collective, const Communicator& communicator) {
  return collective == Collective::kAllGather && communicator.zero_ctas ? Coverage::kCopyEngine
                                                                        : Coverage::kSymmetricKernel;
}

// What NCCL asked a tuner about the call; `mode` and `entry` of its communicator.
Coverage CoverageByQuestions(const CollectiveCall& call, Mode mode, const GroupInFlight& entry) {
  if (!Chooses(mode)) return Coverage::kTunable;
  const Communicator& communicator = *entry.communicator;
  if (!communicator.blocking || !communicator.claimed.load(std::memory_order_relaxed))
    return Coverage::kUnknown;
  const uint8_t about = QuestionsAbout(call.collective);
  if ((entry.asked & about) == 0) return CoverageWithoutQuestion(call.collective, communicator);
  return (entry.had_choice & about) == 0 ? Coverage::kSingleConfig : Coverage::kTunable;
}

Coverage CoverageOf(const BufferedCall& buffered, Mode mode, const GroupInFlight& entry) {
  static const bool pinned = PairsArePinned();
  const CollectiveCall& call = buffered.issued.call;
  if (static_cast<int>(call.collective) >= kTunableCollectives) return Coverage::kPointToPoint;
  if (buffered.captured) return Coverage::kCaptured;
  if (call.n_ranks == 1) return Coverage::kSingleConfig;
  if (call.bytes == 0) return Coverage::kNotAsked;
  return pinned || buffered.configured ? Coverage::kPinned : CoverageByQuestions(call, mode, entry);
}

// For the ledger: what could be chosen, and what could not, and why.
void Cover(Mode mode, const GroupInFlight& entry, BufferedCall& buffered) {
  buffered.issued.coverage = CoverageOf(buffered, mode, entry);
  buffered.communicator->ledger.CountCall(buffered.issued.call, buffered.issued.coverage);
}

// What NCCL asked about, for the next group like this one.
void NoteAsked(const GroupInFlight& entry, const BufferedCall& buffered) {
  const CollectiveCall& call = buffered.issued.call;
  if (!Tunable(call) || call.group_size < 2) return;
  const auto kind = static_cast<size_t>(call.collective);
  if ((entry.asked >> kind & 1) != 0)
    buffered.communicator->expected_sizes.Note(call.collective, call.bytes, entry.asked_about[kind]);
}

void Record(Recorder& recorder, CollectiveTimes* times, const BufferedCall& buffered) {
  const Recorder::Slot slot =
      recorder.Append(CallRecord(buffered.communicator->number, buffered.issued, buffered.stream));
  if (buffered.timed != nullptr) times->kernels().Attach(buffered.timed, recorder, slot);
}

// The library took the group: record and count it, and recognise what comes next. Runs on the calling thread
// before its call returns, so the next call's decision reads a settled answer.
[[gnu::hot]] void CountGroup(ProcessRuntime& runtime, ThreadCalls& thread) {
  Recorder* const recorder = runtime.recorder();
  const Mode mode = runtime.settings().mode;
  const bool accounted = runtime.accounts_for_calls();
  for (BufferedCall& buffered : thread.calls) {
    if (accounted) Cover(mode, thread.in_flight[buffered.flight], buffered);
    if (recorder != nullptr) Record(*recorder, runtime.times(), buffered);
    if (buffered.communicator->times) NoteAsked(thread.in_flight[buffered.flight], buffered);
    StructureTrigger* structure = buffered.communicator->structure.get();
    if (structure != nullptr && Tunable(buffered.issued.call)) structure->Step(buffered.issued.call);
  }
  for (const GroupInFlight& entry : thread.in_flight) {
    if (entry.counts) ++entry.communicator->next_call;
  }
}

// Before the library is called, which may never return. Of a group its first call stands for all.
[[gnu::hot]] void MarkCallsInside(Recorder& recorder, const ThreadCalls& thread) {
  const BufferedCall& first = thread.calls.front();
  const CollectiveCall& call = first.issued.call;
  recorder.Enter(
      WordsOf({.since_ns = first.issued.issued_ns,
               .call_number = call.call_number,
               .bytes = call.bytes,
               .communicator = first.communicator->number,
               .root_or_peer = static_cast<int16_t>(first.issued.root_or_peer),
               .group_size = static_cast<uint16_t>(std::min<size_t>(thread.calls.size(), UINT16_MAX)),
               .collective = static_cast<uint8_t>(call.collective),
               .data_type = static_cast<uint8_t>(call.data_type),
               .op = static_cast<uint8_t>(call.op),
               .what = static_cast<uint8_t>(InsideOf::kCall),
               .reserved = 0}));
}

// At a group's end.
void MarkInside(ProcessRuntime& runtime, const ThreadCalls& thread) {
  if (!thread.unborn.empty()) MarkBirth(runtime, *thread.unborn.back().communicator);
  Recorder* const recorder = runtime.recorder();
  if (recorder != nullptr && !thread.calls.empty()) MarkCallsInside(*recorder, thread);
}

void CloseGroup(ProcessRuntime& runtime, ThreadCalls& thread, bool taken) {
  if (Recorder* const recorder = runtime.recorder()) recorder->Leave();
  if (taken) CountGroup(runtime, thread);
  for (const GroupInFlight& entry : thread.in_flight) entry.communicator->calls_inside.Leave();
  thread.calls.clear();
  thread.in_flight.clear();
}

}  // namespace

CallLabels& LabelsOfThisThread() {
  return t_calls.labels;
}

void MarkPhaseOfThisThread(int phase, int zero_stage, long long step) noexcept {
  ProcessRuntime* runtime = ProcessRuntime::Watching();
  if (runtime == nullptr) return;
  CallLabels& labels = t_calls.labels;
  labels.phase = phase >= 0 && phase < kPhases ? static_cast<Phase>(phase) : Phase::kUnknown;
  labels.stage =
      zero_stage >= 0 && zero_stage < kZeroStages ? static_cast<ZeroStage>(zero_stage) : ZeroStage::kUnknown;
  if (Recorder* recorder = runtime->recorder()) {
    recorder->Append(
        StepRecord({t_calls.clock.Now(), static_cast<uint64_t>(step), labels.phase, labels.stage}));
  }
}

void MarkMemoryOfThisProcess(long long free_bytes, long long total_bytes) noexcept {
  ProcessRuntime* runtime = ProcessRuntime::Watching();
  if (runtime == nullptr || free_bytes < 0 || total_bytes < free_bytes || total_bytes == 0) return;
  const MemoryView memory{t_calls.clock.Now(), static_cast<uint64_t>(free_bytes),
                          static_cast<uint64_t>(total_bytes)};
  runtime->memory().Take(memory.free_bytes, memory.total_bytes);
  if (Recorder* recorder = runtime->recorder()) recorder->Append(MemoryRecord(memory));
}

[[gnu::hot]] GroupInFlight* InFlightOnThisThread(const ControlToken& token) noexcept {
  for (GroupInFlight& entry : t_calls.in_flight) {
    if (std::memcmp(entry.communicator->token.data(), token.data(), sizeof(token)) == 0) return &entry;
  }
  return nullptr;
}

GroupInFlight* OnlyInFlightOnThisThread() noexcept {
  return t_calls.in_flight.size() == 1 ? &t_calls.in_flight.front() : nullptr;
}

[[gnu::hot]] ApiCall::ApiCall(const ApiFacts& facts, ncclComm_t comm, cudaStream_t stream,
                              bool configured) noexcept
    : runtime_(guard_.outermost() ? ProcessRuntime::Watching() : nullptr) {
  if (runtime_ == nullptr) return;
  Communicator* communicator = runtime_->communicators().Find(comm);
  if (communicator == nullptr || !communicator->calls_inside.Enter(&t_calls)) {
    runtime_ = nullptr;
    return;
  }
  Guarded([&] {
    if (!communicator->introduced) IntroduceLate(*runtime_, *communicator, comm);
    ThreadCalls& thread = t_calls;
    const size_t before = thread.calls.size();
    BufferedCall& buffered = thread.calls.emplace_back();
    buffered.configured = configured;
    Describe(facts, communicator, stream, runtime_->accounts_for_calls(), thread, buffered);
    if (IsRootOfParts(buffered)) BufferRootsPart(buffered);
    buffered_ = thread.calls.size() - before;
    if (thread.depth == 0) {
      NumberCalls(thread, false);
      if (Recorder* const recorder = runtime_->recorder()) MarkCallsInside(*recorder, thread);
    }
    if (CollectiveTimes* times = runtime_->times()) {
      // The table is the call's own by now, in a group that of the one before.
      BufferedCall& last = thread.calls.back();
      OpenWindow(*times, runtime_->settings().times, stream, last);
      if (thread.depth == 0) AddTiming(thread.in_flight[last.flight], last);
    }
  });
}

[[gnu::hot]] ncclResult_t ApiCall::Finish(ncclResult_t result) noexcept {
  if (runtime_ == nullptr) return result;
  if (CollectiveTimes* times = runtime_->times()) times->window().Leave();
  ThreadCalls& thread = t_calls;
  if (thread.depth == 0) {
    Guarded([&] { CloseGroup(*runtime_, thread, Taken(result)); });
  } else if (!Taken(result)) {
    thread.calls.resize(thread.calls.size() - buffered_);
  }
  return result;
}

ncclResult_t GroupStarted(const ReentryGuard& guard, ncclResult_t result) noexcept {
  if (guard.outermost() && result == ncclSuccess) ++t_calls.depth;
  return result;
}

bool GroupEnd::outermost() const {
  return guard_.outermost() && t_calls.depth == 1;
}

GroupEnd::GroupEnd(bool simulated) noexcept : runtime_(guard_.outermost() ? ProcessRuntime::Get() : nullptr) {
  if (runtime_ != nullptr && outermost())
    Guarded([&] {
      NumberCalls(t_calls, simulated);
      if (!simulated) MarkInside(*runtime_, t_calls);
    });
}

ncclResult_t GroupEnd::Finish(ncclResult_t result) noexcept {
  if (!guard_.outermost()) return result;
  if (outermost() && runtime_ != nullptr) {
    Guarded([&] {
      BringToLife(*runtime_, t_calls.unborn, result);
      CloseGroup(*runtime_, t_calls, Taken(result));
    });
  }
  if (t_calls.depth > 0) --t_calls.depth;
  return result;
}

ncclResult_t GroupEnd::FinishSimulated(ncclResult_t result) noexcept {
  if (outermost() && runtime_ != nullptr) Guarded([&] { CloseGroup(*runtime_, t_calls, false); });
  if (guard_.outermost() && t_calls.depth > 0) --t_calls.depth;
  return result;
}

IssuedEvent EventOfThisThread(int rank, Collective collective, uint64_t api_bytes) noexcept {
  for (BufferedCall& buffered : t_calls.calls) {
    const CollectiveCall& call = buffered.issued.call;
    if (buffered.timed == nullptr && buffered.why_timed != WhyTimed::kNotAtAll &&
        call.collective == collective && buffered.api_bytes == api_bytes &&
        buffered.communicator->info.rank == rank)
      return {&buffered.timed, call.communicator, call.bytes, call.call_number,
              &buffered.communicator->times};
  }
  return {};
}

int64_t ClockOfThisThread() noexcept {
  return t_calls.clock.Now();
}

bool InsideGroup() {
  return t_calls.depth > 0;
}
std::vector<UnbornCommunicator>& UnbornOfThisThread() {
  return t_calls.unborn;
}

}  // namespace dynamiccl
