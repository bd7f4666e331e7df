// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd: calls are collected on the calling thread; the outermost end plans and
// launches them.
#pragma once

#include <functional>

#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

struct PendingCollective {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream = nullptr;
  CollectiveOperation operation;
};

struct PendingTransfer {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream = nullptr;
  bool sends = false;
  Transfer transfer;
};

void GroupStart();
// Runs what the group collected when it is the outermost. ncclInvalidUsage without a start; the error of a
// call inside the group, and then nothing of the group runs.
ncclResult_t GroupEnd();

// Each is a group of its own when called outside one. Validated arguments only.
ncclResult_t Issue(PendingCollective collective);
ncclResult_t Issue(PendingTransfer transfer);
// Set-up that must run on several ranks at once: at the group's end each runs on a thread of its own.
ncclResult_t IssueSetup(std::function<ncclResult_t()> setup);

// A call inside a group was refused: the group's end returns this too.
void NoteGroupError(ncclResult_t result);

}  // namespace dynamiccl::hostccl
