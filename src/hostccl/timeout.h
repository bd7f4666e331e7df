// SPDX-License-Identifier: Apache-2.0
// How long a communicator waits for a peer that makes no progress.
#pragma once

#include <cstdint>

#include "src/base/status.h"

namespace dynamiccl::hostccl {

// Milliseconds for a communicator that is made now: HOSTCCL_TIMEOUT_MS where it is set, otherwise the larger
// of its default and what hostcclRaiseTimeout was given. kInvalidArgument for a setting that is not positive.
// Any thread.
Result<int64_t> TimeoutMs();

}  // namespace dynamiccl::hostccl
