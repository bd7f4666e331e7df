// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd. Calls are collected on the calling thread. The outermost end plans and
// launches them: on the calling thread, or on a thread of its own for non-blocking communicators.
#pragma once

#include <functional>

#include "src/hostccl/communicator_handle.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// A validated collective that waits for the end of its group.
struct PendingCollective {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t handle = nullptr;
  cudaStream_t stream = nullptr;
  CollectiveOperation operation;
};

// A validated send or receive that waits for the end of its group.
struct PendingTransfer {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t handle = nullptr;
  cudaStream_t stream = nullptr;
  bool sends = false;
  Transfer transfer;
  cudaEvent_t launch_event = nullptr;  // event of the collective that this transfer is a part of
};

// Work that waits for other ranks, such as making a communicator.
struct PendingSetup {
  // The handle whose state tells how it went and whether it blocks; null means that it blocks.
  ncclComm_t handle = nullptr;
  // Setups on the same communicator run in order, since they use its sockets. Null: side by side with all
  // others.
  const Communicator* in_order_on = nullptr;
  std::function<ncclResult_t()> run;
};

// Opens a group on this thread, or one inside the open group.
void GroupStart();
// Closes the innermost group and, when it is the outermost, runs what was collected. ncclInvalidUsage without
// an open group. If a call inside the group was refused, its error is returned and nothing of the group runs.
// ncclInProgress when the group goes on in the background.
ncclResult_t GroupEnd();
// Does as GroupEnd, but the data-moving calls of the outermost group are not launched: *microseconds gets the
// time that the cost model expects for them, and stays unchanged when there are none.
ncclResult_t GroupSimulate(float* microseconds);

// Adds a call to the open group, or runs it as a group of its own. The arguments must have been validated.
ncclResult_t Issue(PendingCollective collective);
ncclResult_t Issue(PendingTransfer transfer);
// Adds set-up work. At the group's end setups run side by side, except those in order on one communicator.
ncclResult_t IssueSetup(PendingSetup setup);

// Tells the open group that a call in it was refused.
void NoteGroupError(ncclResult_t result);

}  // namespace dynamiccl::hostccl
