// SPDX-License-Identifier: Apache-2.0
// Decides, when the program issues a call, whether NCCL's profiler times it. With a guard, the plan of the
// communicator's table names the keys whose next calls are timed. Without a guard, two consecutive calls out
// of every 200 are timed (plugin/times/timing_window.h).
#pragma once

#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/job_settings.h"
#include "plugin/times/collective_times.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Sets `timing_reason` of a described call, and opens the profiler's window on this thread if this rank's
// time is used. The caller closes the window after the library has returned. Calls that are captured into a
// CUDA graph are never timed, because the stamps would become part of the graph. Issuing thread.
void OpenTimingWindow(CollectiveTimes& times, Timed wanted, cudaStream_t stream, bool lone_call,
                      PendingCall& pending);

// Stamps a described call that begins a step of the guard's experiment, on the leader's rank. Captured calls
// have no stamps. Issuing thread, before the library is called.
void StampStep(cudaStream_t stream, PendingCall& pending);

// Notes in the group that one of its calls is timed or stamped, and why.
inline void AddTiming(const PendingCall& pending, IssuedGroup& group) {
  group.timed |= pending.timing_reason != TimingReason::kNotTimed;
  group.on_suspicion |= pending.timing_reason == TimingReason::kOnSuspicion;
  group.stamped |= pending.stamped;
}

}  // namespace dynamiccl
