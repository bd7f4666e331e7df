// SPDX-License-Identifier: Apache-2.0
// The NCCL library of this process, whichever it is, through its function table.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"
#include "src/base/status.h"
#include "src/nccl_abi/nccl_function_table.h"

namespace dynamiccl {

class NcclLibrary {
 public:
  // Loads libnccl.so.2 by the loader's rules (LD_LIBRARY_PATH). An object preloaded into the process that
  // defines NCCL's functions is called instead, as in a program that links NCCL.
  static Result<NcclLibrary> Open();

  const NcclFunctionTable& functions() const { return functions_; }
  // Null when the library does not have the symbol.
  void* Symbol(const char* name) const { return library_.Symbol(name); }
  bool is_hostccl() const { return Symbol("hostcclStreamCreate") != nullptr; }
  // "hostccl 2.28.9", "NCCL 2.28.9": the number is what ncclGetVersion says.
  std::string Description() const;

  // An error that names the call, NCCL's text for the result and its last message.
  Status Check(ncclResult_t result, const char* call, ncclComm_t communicator = nullptr) const;

 private:
  DynamicLibrary library_;
  NcclFunctionTable functions_;
};

}  // namespace dynamiccl
