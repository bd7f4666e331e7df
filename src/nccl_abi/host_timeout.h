// SPDX-License-Identifier: Apache-2.0
// Lets a program say how long hostccl shall wait for a peer. A trainer that computes for minutes between
// collectives needs more than the default.
#pragma once

#include <stdint.h>

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// All communicators of this process wait at least `milliseconds` without progress before they fail. Of
// several calls the longest time counts. If the user has set HOSTCCL_TIMEOUT_MS, that value counts instead.
// Any thread. Returns ncclInvalidArgument unless `milliseconds` is positive.
ncclResult_t hostcclRaiseTimeout(int64_t milliseconds);

#ifdef __cplusplus
}
#endif
