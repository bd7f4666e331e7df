// SPDX-License-Identifier: Apache-2.0
// The time-out: how long a communicator waits for a peer that makes no progress.
#pragma once

#include <cstdint>

#include "src/base/status.h"

namespace dynamiccl::hostccl {

// Returns the time-out, in milliseconds, of a communicator that is made now. That is HOSTCCL_TIMEOUT_MS if it
// is set, otherwise the larger of its default and the value passed to hostcclRaiseTimeout. Returns
// kInvalidArgument for a setting that is not positive. Any thread may call this.
Result<int64_t> TimeoutMs();
// Returns true if HOSTCCL_TIMEOUT_MS is set.
bool UserSetsTimeout();
// Returns the largest value passed to hostcclRaiseTimeout, in milliseconds; 0 before any call of it. Any
// thread may call this.
int64_t RaisedTimeoutMs();

}  // namespace dynamiccl::hostccl
