// SPDX-License-Identifier: Apache-2.0
// Sends our log through NCCL's, where the user reads it.
#pragma once

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl {

// Sends lines through NCCL's logger from now on, when NCCL_DEBUG lets at least warnings through; otherwise
// they stay on standard error, where they are seen. Any thread; the last logger counts.
void LogThroughNccl(ncclDebugLogger_t logger);

}  // namespace dynamiccl
