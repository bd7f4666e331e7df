// SPDX-License-Identifier: Apache-2.0
// Turns the calls of a group into launches on streams. This decides which calls are merged into batches, the
// configuration of each batch, and which calls must run side by side.
#pragma once

#include <span>
#include <vector>

#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {

// The collectives, sends and receives of a group, in the order in which the program issued them.
struct GroupCalls {
  std::vector<PendingCollective> collectives;
  std::vector<PendingTransfer> transfers;
};

// Plans the calls on the calling thread, then runs or enqueues them. Calls that share a stream or a
// communicator, directly or through other calls, become one launch. So no order of communicators or streams
// can deadlock a group.
ncclResult_t LaunchGroup(GroupCalls calls);

// Does as LaunchGroup for a single call without profiler events. It skips the work that only groups need: a
// small call takes about a microsecond, and each allocation would be a noticeable part of that.
ncclResult_t LaunchAlone(PendingCollective call);

// Plans like LaunchGroup, but does not launch. `microseconds` gets the time that the cost model expects if
// the batches of a communicator run one after another and communicators run side by side. Without collectives
// it stays unchanged, because NCCL's model has no Send and Recv.
ncclResult_t EstimateGroup(const GroupCalls& calls, float& microseconds);

// Sorts the calls of one communicator as NCCL does: by collective, operator and data type, larger calls
// first. Then it asks the planner once for each batch of merged calls, and stores the configurations. The
// result is equal on all ranks.
ncclResult_t ChooseConfigs(Communicator& communicator, std::span<CollectiveOperation> operations);

}  // namespace dynamiccl::hostccl
