// SPDX-License-Identifier: Apache-2.0
// The few functions of NCCL itself that are replaced, because no kernel will ever run.
#pragma once

#include <string_view>

namespace cuda_standin {

// The replacement of an NCCL function by its mangled name, or null for all others.
const void* FindNcclHook(std::string_view name);

}  // namespace cuda_standin
