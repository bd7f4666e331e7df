// SPDX-License-Identifier: Apache-2.0
// Redirects functions of a loaded library, in the memory of this process only. x86-64.
#pragma once

#include <cstdint>

namespace cuda_standin {

// Overwrites the first 12 bytes of `function` with a jump to `replacement`. No other thread may be running
// the function. False when its page cannot be made writable.
bool RedirectFunction(void* function, const void* replacement);

// A function that prints "cuda_standin: <name> has no stand-in" and returns CUDA's error 801 (not
// supported), whatever it is called with. `name` must live as long as the process. Null when memory is out.
void* MakeMissingFunction(const char* name);

// How often functions made by MakeMissingFunction were called.
uint64_t MissingFunctionCalls();

}  // namespace cuda_standin
