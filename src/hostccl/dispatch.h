// SPDX-License-Identifier: Apache-2.0
// Where a launch runs: a small one on the calling thread, others on their first stream's thread. The launches
// of a communicator run one after another, whatever streams they are on.
#pragma once

#include <memory>
#include <vector>

#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// One launch in preparation: a plan for each communicator, and the streams that the user named for its calls.
struct LaunchDraft {
  std::vector<CommunicatorPlan> plans;
  std::vector<cudaStream_t> streams;  // the first one runs the launch
};

// Runs a launch inline or enqueues it on its first stream. The other streams of its calls wait for the
// launch, and the launch waits for the work queued on them, so calls stay in order on every stream.
ncclResult_t Dispatch(LaunchDraft draft);

// The steps of Dispatch, which carried_call.cc takes in its own way.

// Returns the weight of a call when NCCL merges (enqueue.cc, ncclPrepareTasks): an AllReduce uses the links
// twice.
uint64_t Traffic(const CollectiveOperation& operation, int n_ranks);
// Returns true if the calling thread may run calls of so many bytes itself, in which AllReduce counts twice.
// Larger calls take longer than handing them over, and the program may want to compute meanwhile.
bool FitsInline(const Communicator& communicator, uint64_t bytes);
// Claims the stream for an inline call, whose caller holds the communicator's launch_mutex. Returns false if
// the stream or the communicator is busy.
bool ClaimAfterLast(HostStream& stream, Communicator& communicator);
// Makes `main` wait for the communicator's last launch if that runs on another stream, and records the new
// launch as the last.
void RunAfterLast(HostStream& main, Communicator& communicator, const std::shared_ptr<Completion>& done,
                  bool brief);

}  // namespace dynamiccl::hostccl
