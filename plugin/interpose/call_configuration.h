// SPDX-License-Identifier: Apache-2.0
// What a program says about one call itself (ncclAllReduceConfig and its like, NCCL 2.31 and later).
#pragma once

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Whether it chooses algorithm, protocol or channels of the call: then nothing is chosen for it. `config` may
// be null, and shorter than ours: only its first `size` bytes are read.
bool ChoosesItself(const ncclCollConfig_t* config) noexcept;

}  // namespace dynamiccl
