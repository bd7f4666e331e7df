// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_timing.h"

#include "plugin/interpose/stream_capture.h"
#include "plugin/times/timing_window.h"
#include "src/decision/decision_engine.h"

namespace dynamiccl {
namespace {

// Returns the key that NCCL is going to ask about. In a group NCCL asks about batches, whose size is known
// only at the group's end. So the size is taken from the last similar group.
TableKey ExpectedKeyOf(const PendingCall& pending, bool lone_call) {
  const CollectiveCall& call = pending.issued.call;
  const Communicator& communicator = *pending.communicator;
  TableKey key{call.collective, {}, RecognisedRole(communicator, call.collective, call.bytes)};
  key.size_class = lone_call ? SizeClassOf(call.bytes)
                             : communicator.issuing.expected_sizes.Of(call.collective, call.bytes);
  return key;
}

WhyTimed WhyToTime(const PendingCall& pending, Timed wanted, bool lone_call) {
  if (!IsTunable(pending.issued.call)) return WhyTimed::kNotAtAll;
  if (wanted == Timed::kAll) return WhyTimed::kByPlan;
  const Communicator& communicator = *pending.communicator;
  const SwitchingState& switching = communicator.switching;
  const uint64_t number = communicator.issuing.next_call;
  const DecisionEngine* const engine = switching.times ? switching.tables->current().engine : nullptr;
  const PlannedTable* const plan = engine == nullptr ? nullptr : engine->plan();
  if (plan == nullptr) return InTimingWindow(number) ? WhyTimed::kByPlan : WhyTimed::kNotAtAll;
  if (plan->TimesNext(ExpectedKeyOf(pending, lone_call), number)) return WhyTimed::kByPlan;
  return switching.times->TimesAll(number) ? WhyTimed::kOnSuspicion : WhyTimed::kNotAtAll;
}

}  // namespace

void OpenTimingWindow(CollectiveTimes& times, Timed wanted, cudaStream_t stream, bool lone_call,
                      PendingCall& pending) {
  times.CountCall();
  const WhyTimed why = WhyToTime(pending, wanted, lone_call);
  if (why == WhyTimed::kNotAtAll || StreamIsCapturing(stream)) return;
  pending.why_timed = why;
  // Every rank notes which calls are timed, but only the ranks that report to the leader measure the time.
  const TimesReport* const report = pending.communicator->switching.times.get();
  if (report == nullptr || report->tells() || wanted == Timed::kAll) times.window().Enter();
}

}  // namespace dynamiccl
