// SPDX-License-Identifier: Apache-2.0
// Sends DynamICCL's log through NCCL's, where the user reads it.
#pragma once

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl {

// From now on sends lines through NCCL's logger if NCCL_DEBUG shows at least warnings. Otherwise they stay on
// standard error, where the user sees them. Any thread; the last logger is used.
void LogThroughNccl(ncclDebugLogger_t logger);

}  // namespace dynamiccl
