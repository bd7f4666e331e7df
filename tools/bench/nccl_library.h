// SPDX-License-Identifier: Apache-2.0
// The NCCL library of this process, NVIDIA's or hostccl, as a table of its functions.
#pragma once

#include <string>
#include <string_view>

#include "src/base/dynamic_library.h"
#include "src/base/status.h"
#include "src/nccl_abi/nccl_function_table.h"

namespace dynamiccl {

// The way to hostccl that a hint names. The option --hostccl has no effect on a rank that another launcher
// started, since the loader reads LD_LIBRARY_PATH at the start of a process.
inline constexpr std::string_view kHostcclFolder =
    "hostccl's folder, which `dynamiccl path --hostccl` prints; ranks that dynamiccl starts get it by "
    "--hostccl";

// Owns the handle of the library. Movable. Its functions stay valid as long as the object lives.
class NcclLibrary {
 public:
  // Loads libnccl.so.2 by the loader's rules (LD_LIBRARY_PATH). If an object that is preloaded into the
  // process defines NCCL's functions, these are called instead, as in a program that links NCCL. The error is
  // kUnsupported for a library older than 2.19.
  static Result<NcclLibrary> Open();

  const NcclFunctionTable& functions() const { return functions_; }
  // Returns a function that only some releases of NCCL have; null when this one lacks it.
  void* Symbol(const char* name) const { return library_.Symbol(name); }
  bool is_hostccl() const { return Symbol("hostcclStreamCreate") != nullptr; }
  // Name and version of the library, "hostccl 2.28.9" or "NCCL 2.28.9", with the number that ncclGetVersion
  // returns.
  std::string Description() const;

  // Converts a result of NCCL into an error that has the call's name, NCCL's text for the result and NCCL's
  // last message.
  Status Check(ncclResult_t result, const char* call, ncclComm_t communicator = nullptr) const;

 private:
  DynamicLibrary library_;
  NcclFunctionTable functions_;
};

}  // namespace dynamiccl
