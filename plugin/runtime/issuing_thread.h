// SPDX-License-Identifier: Apache-2.0
// Holds what one thread of the program has issued since its outermost ncclGroupStart, or in the call that it
// is in. The interposer writes it. The tuner and the profiler, which NCCL calls on the same thread, look up
// in it the calls that NCCL asks about. No other thread ever sees it, so nothing here is locked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/runtime/issued_group.h"
#include "src/base/interpolated_clock.h"
#include "src/collective/collective_call.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// The reason for which a call is timed. kOnSuspicion: only because calls look slow; such a time is no fair
// sample.
enum class TimingReason : uint8_t { kNotTimed, kOnSuspicion, kByPlan };

// One call of a function that moves data, from its entry until the library has accepted its group. Only the
// interposer writes it, except for `timed`.
struct PendingCall {
  Communicator* communicator = nullptr;
  IssuedCall issued;
  // All ranks must make the same call, and it moves data, so the group gets a call number.
  bool counts = false;
  // The program itself chose the call's configuration.
  bool configured = false;
  // The stream's handle, folded to 32 bits.
  uint32_t stream = 0;
  // Bytes according to the count that was passed to the API; NCCL's own total may be larger.
  uint64_t api_bytes = 0;
  // The handle of KernelTimes, which the profiler writes when NCCL begins an event for this call. Null: not
  // timed.
  void* timed = nullptr;
  TimingReason timing_reason = TimingReason::kNotTimed;
  // The call is captured into a CUDA graph.
  bool captured = false;
  // The device's time at this call is stamped.
  bool stamped = false;
  // Index of the call's group in IssuingThread::groups, once the group is numbered.
  uint32_t group = 0;
};

// Returns true if the call has a choice of algorithm, so that the tuner is asked about it and the structure
// agent sees it.
inline bool IsTunable(const CollectiveCall& call) {
  return call.collective < Collective::kSendRecv && call.bytes > 0;
}

// The program's labels for the calls that this thread issues next (dynamicclMarkPhase, dynamicclMarkRole).
struct CallLabels {
  Phase phase = Phase::kUnknown;
  Role role = Role::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
};

// A communicator that was requested inside a group. The library initialises it at the group's end, and then
// writes its handle.
struct PendingCommunicator {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t* handle = nullptr;
};

// The call to which an event of NCCL's profiler belongs. `handle` is null if no call on this thread matches.
// The profiler writes its handle there, and the interposer reads it when it records the call.
struct IssuedEvent {
  void** handle = nullptr;
  uint64_t communicator = 0;
  uint64_t bytes = 0;  // NCCL's total
  uint64_t call_number = 0;
  const std::shared_ptr<TimesReport>* report = nullptr;  // null: nobody needs the time
};

// The calls under way on one thread. One object for each thread, valid until the thread's memory is gone:
// also while its thread variables are destroyed, and while the process ends.
class IssuingThread {
 public:
  // Returns the calling thread's object. Each access checks whether the thread's object exists yet, so the
  // functions that handle one call pass the reference on.
  static IssuingThread& Current() noexcept;

  bool inside_group() const { return depth > 0; }
  // Returns the group under way on the communicator with this token; null if there is none.
  IssuedGroup* GroupOn(const ControlToken& token) noexcept;
  // Returns the group under way if there is exactly one; else null.
  IssuedGroup* OnlyGroup() noexcept { return groups.size() == 1 ? &groups.front() : nullptr; }
  // Returns the first call that is to be timed, has no handle yet, and has this rank, collective and API
  // bytes. Equal calls are returned in the order in which they were issued.
  IssuedEvent EventOf(int rank, Collective collective, uint64_t api_bytes) noexcept;
  // Forgets all calls after the library has returned. The vectors keep their memory for the next group.
  void Clear() noexcept {
    calls.clear();
    groups.clear();
  }

  // Number of groups that are open on this thread.
  int depth = 0;
  // Number of outermost groups that have ended on this thread; it may wrap.
  uint32_t ended = 0;
  CallLabels labels;
  // The clock for the times in call records.
  InterpolatedClock clock;
  // The pending calls of this thread, in the order of issue.
  std::vector<PendingCall> calls;
  // One group for each communicator in `calls`; empty until the calls are numbered.
  std::vector<IssuedGroup> groups;
  std::vector<PendingCommunicator> pending_communicators;
};

}  // namespace dynamiccl
