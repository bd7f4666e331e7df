// SPDX-License-Identifier: Apache-2.0
// How long hostccl waits for a peer, as the program around it asks.
#pragma once

#include <stdint.h>

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Communicators that this process makes from now on wait for at least so many milliseconds without progress,
// the longest of all that was asked for. HOSTCCL_TIMEOUT_MS, where the user has set it, wins. Any thread.
// ncclInvalidArgument for a number that is not positive.
ncclResult_t hostcclRaiseTimeout(int64_t milliseconds);

#ifdef __cplusplus
}
#endif
