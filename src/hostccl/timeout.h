// SPDX-License-Identifier: Apache-2.0
// How long a communicator waits for a peer that makes no progress.
#pragma once

#include <cstdint>

#include "src/base/status.h"

namespace dynamiccl::hostccl {

// Milliseconds for a communicator made now: HOSTCCL_TIMEOUT_MS where it is set, else the larger of its
// default and what hostcclRaiseTimeout was given. Any thread.
Result<int64_t> TimeoutMs();

}  // namespace dynamiccl::hostccl
