// SPDX-License-Identifier: Apache-2.0
// The library that the driver is linked with, because no NCCL needs to be installed. It has the names of
// NCCL's functions, and each function aborts. At run time the loader finds the real libnccl.so.2.
#include <cstdlib>

#include "src/nccl_abi/nccl_function_table.h"

#define DYNAMICCL_STUB(since, door, result, name, parameters, arguments)           \
  extern "C" __attribute__((visibility("default"))) result nccl##name parameters { \
    std::abort();                                                                  \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"
DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_STUB)
DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_STUB)
