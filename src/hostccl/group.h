// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd: calls are collected on the calling thread; the outermost end plans and
// launches them, on the calling thread or, for non-blocking communicators, on one of its own.
#pragma once

#include <functional>

#include "src/hostccl/communicator_handle.h"
#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

struct PendingCollective {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t handle = nullptr;
  cudaStream_t stream = nullptr;
  CollectiveOperation operation;
};

struct PendingTransfer {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t handle = nullptr;
  cudaStream_t stream = nullptr;
  bool sends = false;
  Transfer transfer;
  cudaEvent_t launch_event = nullptr;  // of the collective that it is part of
};

// Work that waits for other ranks, such as making a communicator.
struct PendingSetup {
  // Whose state tells how it went, and whether it blocks; null: it blocks.
  ncclComm_t handle = nullptr;
  // Those on the same communicator run in order; null: beside all others.
  const Communicator* in_order_on = nullptr;
  std::function<ncclResult_t()> run;
};

void GroupStart();
// Runs what the group collected when it is the outermost. ncclInvalidUsage without a start; the error of a
// call inside the group, and then nothing of the group runs. ncclInProgress when it goes on in the
// background.
ncclResult_t GroupEnd();
// As GroupEnd, but of the outermost group's data-moving calls nothing is launched: *microseconds is what the
// cost model expects for them, unchanged when there are none.
ncclResult_t GroupSimulate(float* microseconds);

// Each is a group of its own when called outside one. Validated arguments only.
ncclResult_t Issue(PendingCollective collective);
ncclResult_t Issue(PendingTransfer transfer);
// At the group's end those that are not in order on one communicator run side by side.
ncclResult_t IssueSetup(PendingSetup setup);

// A call inside a group was refused: the group's end returns this too.
void NoteGroupError(ncclResult_t result);

}  // namespace dynamiccl::hostccl
