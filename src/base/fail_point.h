// SPDX-License-Identifier: Apache-2.0
// Places where a test can end, stop or delay a process: HOSTCCL_FAILPOINT=name:action[:n]. Costs a test of a
// flag where it is not set.
#pragma once

#include <span>

#include "src/base/status.h"

namespace dynamiccl {

// In the order in which a rank passes them: those of a communicator's life, then those of the trainer's
// saves.
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

// By FailPoint.
std::span<const char* const> FailPointNames();

// What HOSTCCL_FAILPOINT says is wrong: an error that names the points and the actions.
Status CheckFailPointSetting();

// Any thread. Acts when the setting names this point and it is passed for the n-th time (default 1):
//   kill   SIGKILL to this process
//   stop   SIGSTOP
//   exit   _exit(0): a rank that ends without a word
//   delay  sleeps for half a second
void PassFailPoint(FailPoint point);

}  // namespace dynamiccl
