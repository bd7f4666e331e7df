// SPDX-License-Identifier: Apache-2.0
// Tells a program with how many channels hostccl runs a call for which nobody sets the channels. NCCL's API
// has no such question, and hostccl takes fewer channels than NCCL's cost model where no link is emulated.
#pragma once

#include <stdint.h>

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sets *channels for one call of `bytes` bytes, which is NCCL's total over the ranks. `collective`,
// `algorithm` and `protocol` are the numbers that a tuner plugin gets (tuner_types.h). Any thread that issues
// the communicator's calls. Returns ncclInvalidArgument for a collective without a tuner, for numbers that do
// not exist, or if comm or channels is null.
ncclResult_t hostcclUsualChannels(ncclComm_t comm, int collective, uint64_t bytes, int algorithm,
                                  int protocol, int* channels);

#ifdef __cplusplus
}
#endif
