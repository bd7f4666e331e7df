// SPDX-License-Identifier: Apache-2.0
// Where the real NCCL is: finds the functions that the interposed ones forward to, each at its first use.
#pragma once

#include "src/nccl_abi/nccl_function_table.h"

namespace dynamiccl {

enum class RealFunction {
#define DYNAMICCL_REAL_FUNCTION(result, name, parameters, arguments) k##name,
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_REAL_FUNCTION)
#undef DYNAMICCL_REAL_FUNCTION
      kCount
};

// Null when no NCCL in this process has the function; asked again at the next call, since NCCL may be loaded
// later. Looks behind this object in the global scope, then into a libnccl that was loaded privately (Python
// extensions, ctypes), then at DYNAMICCL_NCCL_LIBRARY. Thread-safe; one atomic load once the function is
// known.
void* RealAddress(RealFunction function) noexcept;

// An address for a function outside the table ("GroupSimulateEnd"); not cached.
void* RealAddress(const char* name_without_nccl) noexcept;

// Calls the real function of type `Function`; ncclInvalidUsage when there is none.
template <typename Function, typename... Arguments>
ncclResult_t Forward(RealFunction function, Arguments... arguments) {
  const auto real = reinterpret_cast<Function>(RealAddress(function));
  return real == nullptr ? ncclInvalidUsage : real(arguments...);
}

}  // namespace dynamiccl

#define DYNAMICCL_FORWARD(name, ...) \
  ::dynamiccl::Forward<decltype(&nccl##name)>(::dynamiccl::RealFunction::k##name __VA_OPT__(, ) __VA_ARGS__)
