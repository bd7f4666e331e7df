// SPDX-License-Identifier: Apache-2.0
// Tables of the functions that the stand-in implements, by the names that NCCL looks up. Each source file has
// one table.
#pragma once

#include <span>
#include <string_view>

namespace cuda_standin {

struct NamedFunction {
  std::string_view name;
  const void* address = nullptr;
};

// These tables hold functions of the CUDA runtime (cudaXxx).
std::span<const NamedFunction> RuntimeDeviceFunctions();
std::span<const NamedFunction> RuntimeMemoryFunctions();
std::span<const NamedFunction> RuntimeStreamFunctions();
std::span<const NamedFunction> RuntimeCaptureFunctions();
std::span<const NamedFunction> RuntimeLaunchFunctions();

// These tables hold functions of the CUDA driver (cuXxx).
std::span<const NamedFunction> DriverDeviceFunctions();
std::span<const NamedFunction> DriverMemoryFunctions();
std::span<const NamedFunction> DriverLaunchFunctions();

// Returns null when the stand-in has no such function. The suffixes _ptsz and _ptds, which mark per-thread
// streams, are ignored.
const void* FindRuntimeFunction(std::string_view name);

// Returns the driver function of that name. For an unknown name it returns a function that reports itself as
// missing when it is called. Returns null only when there is no room for such a function.
const void* FindDriverFunction(const char* name);

}  // namespace cuda_standin

// Makes a row of such a table: CUDA_STANDIN_FUNCTION(cudaMalloc, Malloc).
#define CUDA_STANDIN_FUNCTION(name, function) \
  { #name, reinterpret_cast < const void*>(&function) }
