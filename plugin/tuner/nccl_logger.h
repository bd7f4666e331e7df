// SPDX-License-Identifier: Apache-2.0
// Sends our log through NCCL's, where the user reads it.
#pragma once

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl {

// From now on, when NCCL_DEBUG lets at least warnings through; else our lines stay on standard error, where
// they are seen.
void LogThroughNccl(ncclDebugLogger_t logger);

}  // namespace dynamiccl
