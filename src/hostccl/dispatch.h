// SPDX-License-Identifier: Apache-2.0
// Decides where a launch runs: a small launch on the calling thread, others on the thread of their first
// stream. The launches of a communicator run one after another, on whatever streams they are.
#pragma once

#include <memory>
#include <vector>

#include "src/hostccl/launch.h"

namespace dynamiccl::hostccl {

// A launch in preparation: a plan for each communicator, and the streams that the program named for the
// calls.
struct LaunchDraft {
  std::vector<CommunicatorPlan> plans;
  std::vector<cudaStream_t> streams;  // the first one runs the launch
};

// Runs a launch inline or enqueues it on its first stream. The other streams wait for the launch, and the
// launch waits for the work queued on them. So calls stay in order on every stream.
ncclResult_t Dispatch(LaunchDraft draft);

// The following functions are steps of Dispatch. carried_call.cc calls them too, in a sequence of its own.

// Returns the bytes that a call moves over the links. NCCL compares this number when it merges calls
// (enqueue.cc, ncclPrepareTasks). AllReduce counts twice because it uses the links twice.
uint64_t Traffic(const CollectiveOperation& operation, int n_ranks);
// Returns true if the calling thread may run calls of so many bytes itself (counted as in Traffic). Larger
// calls take longer than passing them to a stream's thread, and the program may want to compute meanwhile.
bool FitsInline(const Communicator& communicator, uint64_t bytes);
// Claims the stream for a call that this thread runs itself. The caller holds the communicator's
// launch_mutex. Returns false if the stream or the communicator is busy.
bool ClaimAfterLast(HostStream& stream, Communicator& communicator);
// Records the new launch as the communicator's last one. If the launch before it runs on another stream,
// `main` waits for that launch.
void RunAfterLast(HostStream& main, Communicator& communicator, const std::shared_ptr<Completion>& done,
                  bool brief);

}  // namespace dynamiccl::hostccl
