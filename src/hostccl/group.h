// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd. Calls are collected on the calling thread. The outermost ncclGroupEnd
// plans and launches them, on the calling thread or, for non-blocking communicators, on a new thread.
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
  // The handle whose state keeps the result. Its communicator decides whether the set-up blocks; with null it
  // blocks.
  ncclComm_t handle = nullptr;
  // Set-ups on the same communicator run in order, because they use its sockets. With null the set-up runs
  // beside all others.
  const Communicator* in_order_on = nullptr;
  std::function<ncclResult_t()> run;
};

// Opens a group on this thread. It may be inside another open group.
void GroupStart();
// Returns true if this thread has an open group.
bool InGroup();
// Closes the innermost group and, if it is the outermost, runs the collected calls. Returns ncclInvalidUsage
// without an open group. If a call inside the group was refused, it returns that call's error and runs
// nothing of the group. Returns ncclInProgress if the group continues in the background.
ncclResult_t GroupEnd();
// Does as GroupEnd, but does not launch the collectives and transfers of the outermost group. *microseconds
// gets the time that the cost model expects for the collectives, and stays unchanged if the group has none.
ncclResult_t GroupSimulate(float* microseconds);

// Adds a call to the open group. Without an open group the call runs as a group of its own. Its arguments
// must have been validated.
ncclResult_t Issue(PendingCollective collective);
ncclResult_t Issue(PendingTransfer transfer);
// Adds set-up work to the group. At the group's end set-ups run side by side, except those on the same
// communicator.
ncclResult_t IssueSetup(PendingSetup setup);

// Makes the open group fail, because one of its calls was refused.
void NoteGroupError(ncclResult_t result);

}  // namespace dynamiccl::hostccl
