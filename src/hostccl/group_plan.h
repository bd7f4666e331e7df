// SPDX-License-Identifier: Apache-2.0
// From the calls of a group to launches on streams: merged batches, configs, and which calls must run side by
// side.
#pragma once

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

// Orders the calls of one communicator as NCCL does (bins of equal collective, operator and type, larger
// first), asks the planner once per merged batch, and fills in the configs. Equal on all ranks.
ncclResult_t ChooseConfigs(Communicator& communicator, std::vector<CollectiveOperation>& operations);

}  // namespace dynamiccl::hostccl
