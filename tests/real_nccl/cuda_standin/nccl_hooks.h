// SPDX-License-Identifier: Apache-2.0
// The few functions of NCCL itself that the stand-in replaces, because no kernel ever runs.
#pragma once

#include <string_view>

namespace cuda_standin {

// Returns the replacement of the NCCL function with this mangled name. Null means that the function keeps its
// own code.
const void* FindNcclHook(std::string_view name);

}  // namespace cuda_standin
