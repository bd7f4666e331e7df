// SPDX-License-Identifier: Apache-2.0
// The life of communicator handles, as the C functions offer it.
#pragma once

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

ncclResult_t GetUniqueId(ncclUniqueId* id);
// Null config: NCCL's defaults. Communicators are always blocking: blocking = 0 is accepted and never gives
// ncclInProgress.
ncclResult_t InitRank(ncclComm_t* comm, int n_ranks, const ncclUniqueId& id, int rank,
                      const ncclConfig_t* config);
// All ranks are threads of the caller's process. Null devices: 0 to count - 1.
ncclResult_t InitAll(ncclComm_t* comms, int count, const int* devices);
ncclResult_t Split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm, const ncclConfig_t* config);
// Waits for the communicator's work.
ncclResult_t Finalize(ncclComm_t comm);
ncclResult_t Destroy(ncclComm_t comm);
// Frees whoever waits in the communicator, then destroys it.
ncclResult_t Abort(ncclComm_t comm);

}  // namespace dynamiccl::hostccl
