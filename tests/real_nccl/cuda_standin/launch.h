// SPDX-License-Identifier: Apache-2.0
// Kernel launches: counted and dropped, since there is nothing to run them on.
#pragma once

#include <cstdint>

namespace cuda_standin {

void CountLaunch();
uint64_t LaunchCount();

}  // namespace cuda_standin
