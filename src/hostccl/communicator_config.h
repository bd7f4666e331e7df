// SPDX-License-Identifier: Apache-2.0
// Reading a program's ncclConfig_t.
#pragma once

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Reads no more of the structure than it says it has; what it lacks, and all of a null `config`, comes from
// `inherited`. kInvalidArgument, with the member, for values that NCCL refuses. Members that mean nothing on
// host memory are checked and otherwise ignored.
Result<ncclConfig_t> ReadConfig(const ncclConfig_t* config, const ncclConfig_t& inherited);

// blocking: set and not 0, or not set.
inline bool IsBlocking(const ncclConfig_t& config) {
  return config.blocking != 0;
}

}  // namespace dynamiccl::hostccl
