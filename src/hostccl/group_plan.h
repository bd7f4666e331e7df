// SPDX-License-Identifier: Apache-2.0
// Turns the calls of a group into launches on streams. It decides which calls are merged into batches, the
// configuration of each batch, and which calls must run side by side.
#pragma once

#include <span>
#include <vector>

#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {

// The data-moving calls of a group, in the order in which the program issued them.
struct GroupCalls {
  std::vector<PendingCollective> collectives;
  std::vector<PendingTransfer> transfers;
};

// Plans on the calling thread and enqueues. Calls that share a stream or a communicator, directly or through
// others, become one launch, so no order of communicators or streams can deadlock a group.
ncclResult_t LaunchGroup(GroupCalls calls);

// LaunchGroup for a single call without profiler events. It skips what only groups need, because a small call
// takes about a microsecond and each allocation is a noticeable part of that.
ncclResult_t LaunchAlone(PendingCollective call);

// Plans like LaunchGroup, without launching. `microseconds` gets the time that the cost model expects, with
// the batches of a communicator one after another and communicators side by side. It stays unchanged without
// collectives; Send and Recv are not in NCCL's model.
ncclResult_t EstimateGroup(const GroupCalls& calls, float& microseconds);

// Sorts the calls of one communicator as NCCL does (bins of equal collective, operator and type; larger calls
// first), asks the planner once for each merged batch, and fills in the configurations. Equal on all ranks.
ncclResult_t ChooseConfigs(Communicator& communicator, std::span<CollectiveOperation> operations);

}  // namespace dynamiccl::hostccl
