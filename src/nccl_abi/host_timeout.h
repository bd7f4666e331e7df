// SPDX-License-Identifier: Apache-2.0
// Lets a program say how long hostccl shall wait for a peer. A trainer that computes for minutes between
// collectives needs more than the default.
#pragma once

#include <stdint.h>

#include "src/nccl_abi/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Communicators that this process makes from now on wait at least `milliseconds` without progress before they
// fail; the longest time that was asked for counts. HOSTCCL_TIMEOUT_MS, where the user has set it, wins. Any
// thread. ncclInvalidArgument unless `milliseconds` is positive.
ncclResult_t hostcclRaiseTimeout(int64_t milliseconds);

#ifdef __cplusplus
}
#endif
