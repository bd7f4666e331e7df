// SPDX-License-Identifier: Apache-2.0
// From the calls of a group to launches on streams: merged batches, configs, and which calls must run side by
// side.
#pragma once

#include <span>
#include <vector>

#include "src/hostccl/group.h"

namespace dynamiccl::hostccl {

struct GroupCalls {
  std::vector<PendingCollective> collectives;
  std::vector<PendingTransfer> transfers;
};

// Plans on the calling thread and enqueues. Calls that share a stream or a communicator, directly or through
// others, become one launch, so that no order of communicators or streams can deadlock a group.
ncclResult_t LaunchGroup(GroupCalls calls);

// As LaunchGroup for one call without profiler events and without what only groups need: a small call is over
// in about a microsecond, of which each allocation takes a part.
ncclResult_t LaunchAlone(PendingCollective call);

// Plans as LaunchGroup does and launches nothing: what the cost model expects the collectives to take, those
// of a communicator one after the other and communicators side by side. Unchanged without collectives;
// Send and Recv are not in NCCL's model.
ncclResult_t EstimateGroup(const GroupCalls& calls, float& microseconds);

// Orders the calls of one communicator as NCCL does (bins of equal collective, operator and type, larger
// first), asks the planner once per merged batch, and fills in the configs. Equal on all ranks.
ncclResult_t ChooseConfigs(Communicator& communicator, std::span<CollectiveOperation> operations);

}  // namespace dynamiccl::hostccl
