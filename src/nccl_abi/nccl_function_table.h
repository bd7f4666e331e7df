// SPDX-License-Identifier: Apache-2.0
// Addresses of the functions of one NCCL library, as a structure.
#pragma once

#include "src/nccl_abi/nccl_api.h"
#include "src/nccl_abi/nccl_function_list.h"

#ifdef __cplusplus
namespace dynamiccl {

// One member for each function of DYNAMICCL_NCCL_FUNCTIONS, named without "nccl": table.AllReduce(...).
// Members are null until a user of the table fills them with dlsym. The library must stay loaded while the
// table is used.
struct NcclFunctionTable {
#define DYNAMICCL_NCCL_MEMBER(since, door, result, name, parameters, arguments) \
  result(*name) parameters = nullptr;
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_NCCL_MEMBER)
#undef DYNAMICCL_NCCL_MEMBER
};

}  // namespace dynamiccl
#endif
