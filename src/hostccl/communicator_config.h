// SPDX-License-Identifier: Apache-2.0
// Reads a program's ncclConfig_t.
#pragma once

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Reads the structure as far as its `size` member allows. A null `config` gives `inherited`. Returns
// kInvalidArgument, and names the member, for a value that NCCL refuses. Members without a meaning on host
// memory are checked and otherwise ignored.
Result<ncclConfig_t> ReadConfig(const ncclConfig_t* config, const ncclConfig_t& inherited);

// Returns true unless the program set `blocking` to 0.
inline bool IsBlocking(const ncclConfig_t& config) {
  return config.blocking != 0;
}

}  // namespace dynamiccl::hostccl
