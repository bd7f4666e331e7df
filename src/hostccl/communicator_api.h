// SPDX-License-Identifier: Apache-2.0
// The functions behind the C functions that make and end communicators. Calls that wait for other ranks are
// deferred to the end of the group. On non-blocking communicators they continue in the background. All
// functions return the result of the C function.
#pragma once

#include <span>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Makes a new unique id. A thread of this process serves the id's rendezvous.
ncclResult_t GetUniqueId(ncclUniqueId* id);

// The arguments of the ncclCommInit* functions.
struct InitArguments {
  int n_ranks = 1;
  int rank = 0;
  int device = 0;
  std::span<const ncclUniqueId> ids;     // all ranks meet at the first one; read before the call returns
  const ncclConfig_t* config = nullptr;  // null: NCCL's defaults
};
// Makes one rank. A non-blocking handle exists at once, a blocking one when all ranks have joined.
ncclResult_t InitRank(ncclComm_t* comm, const InitArguments& arguments);
// Makes all ranks in the calling process. A null `devices` stands for devices 0 to count - 1.
ncclResult_t InitAll(ncclComm_t* comms, int count, const int* devices);

// Makes a communicator of the ranks with the same colour. With a non-blocking parent, *new_comm is null until
// the parent's state is no longer ncclInProgress.
ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm, const ncclConfig_t* config);
// The arguments of ncclCommShrink; `excluded` need not be sorted.
struct ShrinkArguments {
  std::span<const int> excluded;
  const ncclConfig_t* config = nullptr;
  int flags = NCCL_SHRINK_DEFAULT;
};
// Makes a communicator without the excluded ranks. Excluded ranks do not call this and may be dead.
ncclResult_t Shrink(ncclComm_t comm, const ShrinkArguments& arguments, ncclComm_t* new_comm);

// Returns the id for the new ranks of the next Grow. Returns ncclInvalidUsage while an earlier id is unused.
ncclResult_t GetGrowId(ncclComm_t comm, ncclUniqueId* id);
// The arguments of ncclCommGrow.
struct GrowArguments {
  int n_ranks = 0;                   // number of ranks of the grown communicator
  const ncclUniqueId* id = nullptr;  // null on existing ranks, except on the one that made it
  int rank = -1;                     // rank of a new rank; -1 on existing ranks
  const ncclConfig_t* config = nullptr;
};
// Adds ranks to a communicator. `comm` is null on a new rank. Existing ranks keep their rank numbers.
ncclResult_t Grow(ncclComm_t comm, const GrowArguments& arguments, ncclComm_t* new_comm);

// Waits for the communicator's work, after which no data may be moved. Call it at most once.
ncclResult_t Finalize(ncclComm_t comm);
// Ends the calls in progress on this rank. Afterwards the communicator can only be split, shrunk or
// destroyed.
ncclResult_t Revoke(ncclComm_t comm, int flags);
// Waits for the communicator's work and frees the handle.
ncclResult_t Destroy(ncclComm_t comm);
// Ends all waits in the communicator or in its initialisation, then destroys it. Any thread may call this.
ncclResult_t Abort(ncclComm_t comm);

}  // namespace dynamiccl::hostccl
