// SPDX-License-Identifier: Apache-2.0
// Turns the calls of a group into launches on streams. It decides which calls are merged into batches, which
// configuration each batch runs with, and which calls must run side by side.
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
// others, become one launch: then no order of communicators or streams can deadlock a group.
ncclResult_t LaunchGroup(GroupCalls calls);

// LaunchGroup for a single call without profiler events. It leaves out what only groups need: a small call
// takes about a microsecond, and each allocation is a noticeable part of that.
ncclResult_t LaunchAlone(PendingCollective call);

// Plans as LaunchGroup does, without launching. `microseconds` gets what the cost model expects: the batches
// of a communicator one after the other, communicators side by side. It stays unchanged without collectives;
// Send and Recv are not in NCCL's model.
ncclResult_t EstimateGroup(const GroupCalls& calls, float& microseconds);

// Sorts the calls of one communicator as NCCL does (bins of equal collective, operator and type; larger calls
// first), asks the planner once for each merged batch, and fills in the configurations. Equal on all ranks.
ncclResult_t ChooseConfigs(Communicator& communicator, std::span<CollectiveOperation> operations);

}  // namespace dynamiccl::hostccl
