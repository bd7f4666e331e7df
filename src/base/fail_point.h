// SPDX-License-Identifier: Apache-2.0
// Named steps of hostccl and of the trainer at which a test can end, stop or delay a process:
// HOSTCCL_FAILPOINT=name:action[:n]. Without that variable, passing a step costs one test of an integer.
// src/base/job_fail_point.h has such steps for the object that is loaded into jobs.
#pragma once

#include <span>

#include "src/base/status.h"

namespace dynamiccl {

// X(identifier, name) for each step, in the order in which a rank passes the steps: first those of a
// communicator's life, then those of a checkpoint.
#define DYNAMICCL_FAIL_POINTS(X)                  \
  X(kIdMade, "id.made")                           \
  X(kRendezvous, "init.rendezvous")               \
  X(kMeet, "init.met")                            \
  X(kMeshJoined, "init.mesh")                     \
  X(kMemoryMade, "init.memory")                   \
  X(kMemoryExchanged, "init.exchanged")           \
  X(kRelayStarted, "init.relay")                  \
  X(kPlannerMade, "init.planner")                 \
  X(kAgreed, "init.agreed")                       \
  X(kLaunchBegin, "launch.begin")                 \
  X(kLaunchMoving, "launch.moving")               \
  X(kLaunchEnd, "launch.end")                     \
  X(kSplitBegin, "split.begin")                   \
  X(kSplitExchanged, "split.exchanged")           \
  X(kFinalize, "finalize")                        \
  X(kDestroy, "destroy")                          \
  X(kCheckpointBegin, "checkpoint.begin")         \
  X(kCheckpointBlock, "checkpoint.block")         \
  X(kCheckpointWritten, "checkpoint.written")     \
  X(kCheckpointPart, "checkpoint.part")           \
  X(kCheckpointMerged, "checkpoint.merged")       \
  X(kCheckpointIndex, "checkpoint.index")         \
  X(kCheckpointCommit, "checkpoint.commit")       \
  X(kCheckpointCommitted, "checkpoint.committed") \
  X(kCheckpointRemoving, "checkpoint.removing")

enum class FailPoint {
#define DYNAMICCL_FAIL_POINT_ID(id, name) id,
  DYNAMICCL_FAIL_POINTS(DYNAMICCL_FAIL_POINT_ID)
#undef DYNAMICCL_FAIL_POINT_ID
};

// The names, indexed by FailPoint.
std::span<const char* const> FailPointNames();

// Checks HOSTCCL_FAILPOINT. The error names the known steps and actions. Call it once at start: PassFailPoint
// ignores a value that does not parse.
Status CheckFailPointSetting();

// Call it where the step happens, on any thread. It acts when the setting names this step and the process
// passes it for the n-th time (default 1):
//   kill   sends SIGKILL to this process
//   stop   sends SIGSTOP to this process
//   exit   calls _exit(0): the rank ends without telling its peers
//   delay  sleeps for half a second
void PassFailPoint(FailPoint point);

}  // namespace dynamiccl
