// SPDX-License-Identifier: Apache-2.0
// The life of communicator handles, as the C functions offer it. Calls that wait for other ranks are deferred
// to the end of a group; on non-blocking communicators they go on in the background.
#pragma once

#include <span>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

ncclResult_t GetUniqueId(ncclUniqueId* id);

struct InitArguments {
  int n_ranks = 1;
  int rank = 0;
  int device = 0;
  std::span<const ncclUniqueId> ids;     // all ranks meet at the first; read before the call returns
  const ncclConfig_t* config = nullptr;  // null: NCCL's defaults
};
// A non-blocking handle exists at once, a blocking one when all ranks have come.
ncclResult_t InitRank(ncclComm_t* comm, const InitArguments& arguments);
// All ranks are threads of the caller's process. Null devices: 0 to count - 1.
ncclResult_t InitAll(ncclComm_t* comms, int count, const int* devices);

// Of a non-blocking parent: its state tells when `new_comm` is there, null until then.
ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm, const ncclConfig_t* config);
struct ShrinkArguments {
  std::span<const int> excluded;
  const ncclConfig_t* config = nullptr;
  int flags = NCCL_SHRINK_DEFAULT;
};
ncclResult_t Shrink(ncclComm_t comm, const ShrinkArguments& arguments, ncclComm_t* new_comm);

// The id for new ranks of the next Grow; ncclInvalidUsage while one is out.
ncclResult_t GetGrowId(ncclComm_t comm, ncclUniqueId* id);
struct GrowArguments {
  int n_ranks = 0;                   // in all
  const ncclUniqueId* id = nullptr;  // null on existing ranks other than the one that made it
  int rank = -1;                     // of a new rank
  const ncclConfig_t* config = nullptr;
};
// `comm` null: a new rank. Existing ranks keep their rank.
ncclResult_t Grow(ncclComm_t comm, const GrowArguments& arguments, ncclComm_t* new_comm);

// Waits for the communicator's work; once.
ncclResult_t Finalize(ncclComm_t comm);
// Ends the calls in flight on this rank; afterwards the communicator can be split, shrunk, destroyed.
ncclResult_t Revoke(ncclComm_t comm, int flags);
ncclResult_t Destroy(ncclComm_t comm);
// Frees whoever waits in the communicator, or in its initialisation, then destroys it.
ncclResult_t Abort(ncclComm_t comm);

}  // namespace dynamiccl::hostccl
