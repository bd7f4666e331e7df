// SPDX-License-Identifier: Apache-2.0
// Functions of NCCL that the oldest release, 2.18.1, lacks. The loader resolves strong references before
// main. One strong reference to such a function would keep the driver from starting on older releases. The
// references here are therefore weak, and null where the release lacks the function. A program checks
// World::Has before it calls one. driver_symbols_test fails when a function is missing in this list.
#pragma once

#include <string_view>

#include "src/nccl_abi/nccl_api.h"
#include "src/nccl_abi/nccl_function_list.h"

#pragma weak ncclAllGatherConfig
#pragma weak ncclAllReduceConfig
#pragma weak ncclAlltoAll
#pragma weak ncclCommDeregister
#pragma weak ncclCommRegister
#pragma weak ncclCommWindowDeregister
#pragma weak ncclCommWindowRegister
#pragma weak ncclGroupSimulateEnd
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclReduceScatterConfig

namespace real_nccl_driver {

// The name of a function without "nccl", and the release that introduced it, in the form of ncclGetVersion
// (22703 is 2.27.3).
struct NewerFunction {
  const char* name = nullptr;
  int since = 0;
};

// Returns the function called `name`. A name that nccl.h does not have is an error at compile time.
consteval NewerFunction Newer(const char* name) {
#define REAL_NCCL_SINCE(since, door, result, function, parameters, arguments) \
  if (std::string_view(name) == #function) return {name, since};
  DYNAMICCL_NCCL_FUNCTIONS(REAL_NCCL_SINCE)
  DYNAMICCL_NCCL_FURTHER_FUNCTIONS(REAL_NCCL_SINCE)
#undef REAL_NCCL_SINCE
  throw "nccl.h has no function of this name";
}

}  // namespace real_nccl_driver
