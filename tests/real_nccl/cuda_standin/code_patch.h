// SPDX-License-Identifier: Apache-2.0
// Redirects functions of a loaded library in the memory of this process only. The machine code is for x86-64.
#pragma once

#include <cstdint>

namespace cuda_standin {

// Overwrites the first 12 bytes of `function` with a jump to `replacement`. No other thread may run
// `function` meanwhile. Returns false when the protection of its pages cannot be changed.
bool RedirectFunction(void* function, const void* replacement);

// Returns a new function that prints "cuda_standin: <name> has no stand-in" and returns CUDA's error 801 (not
// supported). The new function accepts any arguments. `name` must live as long as the process. Returns null
// when there is no room for another function.
void* MakeMissingFunction(const char* name);

// Returns how often the process called functions that MakeMissingFunction made.
uint64_t MissingFunctionCalls();

}  // namespace cuda_standin
