// SPDX-License-Identifier: Apache-2.0
// The functions that the stand-in implements, by the names NCCL looks for. One table a source file.
#pragma once

#include <span>
#include <string_view>

namespace cuda_standin {

struct NamedFunction {
  std::string_view name;
  const void* address = nullptr;
};

// CUDA runtime (cudaXxx).
std::span<const NamedFunction> RuntimeDeviceFunctions();
std::span<const NamedFunction> RuntimeMemoryFunctions();
std::span<const NamedFunction> RuntimeStreamFunctions();
std::span<const NamedFunction> RuntimeCaptureFunctions();
std::span<const NamedFunction> RuntimeLaunchFunctions();

// CUDA driver (cuXxx).
std::span<const NamedFunction> DriverDeviceFunctions();
std::span<const NamedFunction> DriverMemoryFunctions();
std::span<const NamedFunction> DriverLaunchFunctions();

// Null when the stand-in has no such function. The per-thread-stream suffixes _ptsz and _ptds are understood.
const void* FindRuntimeFunction(std::string_view name);

// The driver function, or one that reports itself missing when called; never null unless memory is out.
const void* FindDriverFunction(const char* name);

}  // namespace cuda_standin

// A row of such a table: CUDA_STANDIN_FUNCTION(cudaMalloc, Malloc).
#define CUDA_STANDIN_FUNCTION(name, function) \
  { #name, reinterpret_cast < const void*>(&function) }
