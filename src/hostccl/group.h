// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd. Calls are collected on the calling thread. The outermost end plans and
// launches them: on the calling thread, or on a new thread for non-blocking communicators.
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
  cudaEvent_t launch_event = nullptr;  // launch event of the collective to which this transfer belongs
};

// Work that waits for other ranks, such as making a communicator.
struct PendingSetup {
  // The handle whose state keeps the result and which decides whether the setup blocks; null: it blocks.
  ncclComm_t handle = nullptr;
  // Setups on the same communicator run in order, because they use its sockets. Null: runs beside all others.
  const Communicator* in_order_on = nullptr;
  std::function<ncclResult_t()> run;
};

// Opens a group on this thread, possibly inside an open group.
void GroupStart();
// Returns true if this thread has an open group.
bool InGroup();
// Closes the innermost group and, if it is the outermost, runs the collected calls. ncclInvalidUsage without
// an open group. If a call inside the group was refused, returns that error and runs nothing of the group.
// ncclInProgress if the group continues in the background.
ncclResult_t GroupEnd();
// Like GroupEnd, but does not launch the data-moving calls of the outermost group. *microseconds gets the
// time that the cost model expects for them, and stays unchanged if there are none.
ncclResult_t GroupSimulate(float* microseconds);

// Adds a call to the open group, or runs it as its own group. The arguments must have been validated.
ncclResult_t Issue(PendingCollective collective);
ncclResult_t Issue(PendingTransfer transfer);
// Adds set-up work. At the group's end setups run side by side, except those on the same communicator.
ncclResult_t IssueSetup(PendingSetup setup);

// Marks the open group as failed, because a call in it was refused.
void NoteGroupError(ncclResult_t result);

}  // namespace dynamiccl::hostccl
