// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_timing.h"

#include "plugin/border/cuda_driver.h"
#include "plugin/interpose/events_of_process.h"
#include "plugin/times/timing_window.h"
#include "src/decision/decision_engine.h"

namespace dynamiccl {
namespace {

// While stamps wait for the device, each call whose number is a multiple of 8 checks whether the device has
// reached them.
constexpr uint64_t kCallsPerLook = 8;

// Returns the key that NCCL is going to ask about. In a group NCCL asks about batches, whose size is known
// only at the group's end. So the size is taken from the last similar group.
TableKey ExpectedKeyOf(const PendingCall& pending, bool lone_call) {
  const CollectiveCall& call = pending.issued.call;
  const Communicator& communicator = *pending.communicator;
  TableKey key{call.collective, {}, RecognisedRole(communicator, call.collective, call.bytes)};
  key.size_class = lone_call ? SizeClassOf(call.bytes)
                             : communicator.issuing.size_classes.Predict(call.collective, call.bytes);
  return key;
}

// Returns the plan that decides the communicator's next call; null without a guard.
const PlannedTable* PlanOf(const SwitchingState& switching) {
  const DecisionEngine* const engine = switching.times ? switching.tables->current().engine : nullptr;
  return engine == nullptr ? nullptr : engine->plan();
}

TimingReason WhyToTime(const PendingCall& pending, Timed wanted, bool lone_call) {
  if (!IsTunable(pending.issued.call)) return TimingReason::kNotTimed;
  if (wanted == Timed::kAll) return TimingReason::kByPlan;
  const Communicator& communicator = *pending.communicator;
  const SwitchingState& switching = communicator.switching;
  const uint64_t number = communicator.issuing.next_call;
  const PlannedTable* const plan = PlanOf(switching);
  if (plan == nullptr) return InTimingWindow(number) ? TimingReason::kByPlan : TimingReason::kNotTimed;
  if (plan->TimesNext(ExpectedKeyOf(pending, lone_call), number)) return TimingReason::kByPlan;
  return switching.times->TimesAll(number) ? TimingReason::kOnSuspicion : TimingReason::kNotTimed;
}

}  // namespace

void OpenTimingWindow(CollectiveTimes& times, Timed wanted, cudaStream_t stream, bool lone_call,
                      PendingCall& pending) {
  times.CountCall();
  if (!times.window().has_mask()) return;
  const TimingReason why = WhyToTime(pending, wanted, lone_call);
  if (why == TimingReason::kNotTimed || StreamIsCapturing(stream)) return;
  pending.timing_reason = why;
  // Every rank notes which calls are timed, but only the ranks that report to the leader measure the time.
  const TimesReport* const report = pending.communicator->switching.times.get();
  if (report == nullptr || report->enabled() || wanted == Timed::kAll) times.window().Enter();
}

[[gnu::hot]] void StampStep(cudaStream_t stream, PendingCall& pending) {
  Communicator& communicator = *pending.communicator;
  const SwitchingState& switching = communicator.switching;
  if (!switching.feed || !IsTunable(pending.issued.call)) return;
  StepStamps& stamps = communicator.issuing.stamps;
  const uint64_t number = communicator.issuing.next_call;
  if (number % kCallsPerLook == 0 && stamps.has_pending()) stamps.ReportReached(*switching.times);
  const PlannedTable* const plan = PlanOf(switching);
  if (plan == nullptr || !BeginsStep(plan->plan(), number) || StreamIsCapturing(stream)) return;
  stamps.UseEvents(EventsOfProcess());
  pending.stamped = stamps.Stamp(number, pending.issued.call.collective, stream, *switching.times);
}

}  // namespace dynamiccl
