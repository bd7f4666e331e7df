// SPDX-License-Identifier: Apache-2.0
// Reading a program's ncclConfig_t.
#pragma once

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// Reads the structure as far as its size allows. A null `config` gives `inherited`. Returns kInvalidArgument
// and names the member for values that NCCL refuses. Members without a meaning on host memory are checked and
// otherwise ignored.
Result<ncclConfig_t> ReadConfig(const ncclConfig_t* config, const ncclConfig_t& inherited);

// A communicator is blocking when the member is not set or not 0.
inline bool IsBlocking(const ncclConfig_t& config) {
  return config.blocking != 0;
}

}  // namespace dynamiccl::hostccl
