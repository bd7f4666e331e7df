// SPDX-License-Identifier: Apache-2.0
// How long a communicator waits for a peer that makes no progress.
#pragma once

#include <cstdint>

#include "src/base/status.h"

namespace dynamiccl::hostccl {

// Returns the milliseconds for a communicator that is made now: HOSTCCL_TIMEOUT_MS if it is set, otherwise
// the larger of its default and the value passed to hostcclRaiseTimeout. kInvalidArgument for a setting that
// is not positive. Any thread.
Result<int64_t> TimeoutMs();

}  // namespace dynamiccl::hostccl
