// SPDX-License-Identifier: Apache-2.0
// What one thread of the program has issued since its outermost ncclGroupStart, or by the call that it is in.
// The interposer writes it; the tuner and the profiler, which NCCL calls on the same thread, look up what
// they are asked about. No other thread ever sees it, so nothing here is locked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/runtime/issued_group.h"
#include "src/base/interpolated_clock.h"
#include "src/collective/collective_call.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Why a call is timed. kOnSuspicion: only because calls look slow; such times are no fair sample.
enum class WhyTimed : uint8_t { kNotAtAll, kOnSuspicion, kByPlan };

// One function that moves data, from its entry until the library has taken its group. The interposer alone
// writes it, but for `timed`.
struct PendingCall {
  Communicator* communicator = nullptr;
  IssuedCall issued;
  // All ranks must make the same call, and it moves data: the group gets a call number.
  bool counts = false;
  // The program chose its configuration itself.
  bool configured = false;
  // The stream's handle, folded to 32 bits.
  uint32_t stream = 0;
  // Of the count that was given to the API; NCCL's own total may be larger.
  uint64_t api_bytes = 0;
  // Handle of KernelTimes; the profiler writes it when NCCL begins an event for this call. Null: not timed.
  void* timed = nullptr;
  WhyTimed why_timed = WhyTimed::kNotAtAll;
  // Into a CUDA graph.
  bool captured = false;
  // Index of its group in IssuingThread::groups, once the group is numbered.
  uint32_t group = 0;
};

// Whether a call has a choice of algorithm, so that the tuner is asked about it and the policy follows it.
inline bool IsTunable(const CollectiveCall& call) {
  return call.collective < Collective::kSendRecv && call.bytes > 0;
}

// The program's labels for the calls that this thread issues next (dynamicclMarkPhase, dynamicclMarkRole).
struct CallLabels {
  Phase phase = Phase::kUnknown;
  Role role = Role::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
};

// A communicator that was asked for inside a group: the library initialises it at the group's end, and writes
// its handle then.
struct UnbornCommunicator {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t* handle = nullptr;
};

// The call that an event of NCCL's profiler is about. `handle` is null when no call on this thread fits; what
// is written there comes back when the call is recorded.
struct IssuedEvent {
  void** handle = nullptr;
  uint64_t communicator = 0;
  uint64_t bytes = 0;  // NCCL's total
  uint64_t call_number = 0;
  const std::shared_ptr<TimesReport>* report = nullptr;  // null: nobody wants the time
};

class IssuingThread {
 public:
  // The calling thread's. Each look-up runs the check whether the thread's object exists yet, so the
  // functions of one call hand the reference on.
  static IssuingThread& Current() noexcept;

  bool inside_group() const { return depth > 0; }
  // What is in flight on the communicator of this token; null when nothing is.
  IssuedGroup* GroupOn(const ControlToken& token) noexcept;
  // What is in flight, if that is on one communicator; null when it is on none or on several.
  IssuedGroup* OnlyGroup() noexcept { return groups.size() == 1 ? &groups.front() : nullptr; }
  // The first call that is to be timed, has no handle yet, and is of this rank, collective and bytes at the
  // API. Several calls that are alike are found in the order in which they were issued.
  IssuedEvent EventOf(int rank, Collective collective, uint64_t api_bytes) noexcept;
  // The library has returned: nothing is in flight. The vectors keep their memory for the next group.
  void Clear() noexcept {
    calls.clear();
    groups.clear();
  }

  // Groups that are open on this thread.
  int depth = 0;
  CallLabels labels;
  // The clock by which calls are recorded.
  InterpolatedClock clock;
  // In the order of issue.
  std::vector<PendingCall> calls;
  // One for each communicator that `calls` name; empty until the group is numbered.
  std::vector<IssuedGroup> groups;
  std::vector<UnbornCommunicator> unborn;
};

}  // namespace dynamiccl
