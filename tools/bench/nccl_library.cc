// SPDX-License-Identifier: Apache-2.0
// Looks up NCCL's functions by name.
#include "tools/bench/nccl_library.h"

#include <dlfcn.h>

namespace dynamiccl {
namespace {

// Sorts NCCL's results by who can correct them. Invalid arguments and usage are errors of the user,
// ncclRemoteError comes from another rank, and every other result points to the machine.
ErrorKind KindOf(ncclResult_t result) {
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return ErrorKind::kInvalidArgument;
    case ncclRemoteError:
      return ErrorKind::kPeerFailed;
    default:
      return ErrorKind::kUnavailable;
  }
}

}  // namespace

Result<NcclLibrary> NcclLibrary::Open() {
  NcclLibrary nccl;
  auto library = DynamicLibrary::Open("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "libnccl.so.2: {}", library.error().message),
                    fmt::format("put NCCL's folder in LD_LIBRARY_PATH, or {}", kHostcclFolder));
  }
  nccl.library_ = std::move(*library);
  // Search the global scope, in which a preloaded interposer comes before the library.
  DYNAMICCL_TRY(const DynamicLibrary global, DynamicLibrary::Global());
#define DYNAMICCL_RESOLVE(since, door, result, name, parameters, arguments)                             \
  nccl.functions_.name = reinterpret_cast<decltype(nccl.functions_.name)>(global.Symbol("nccl" #name)); \
  if (nccl.functions_.name == nullptr) {                                                                \
    return MakeError(ErrorKind::kUnsupported,                                                           \
                     "libnccl.so.2 has no nccl" #name ": NCCL 2.19 or later is needed");                \
  }
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_RESOLVE)
#undef DYNAMICCL_RESOLVE
  return nccl;
}

std::string NcclLibrary::Description() const {
  int version = 0;
  functions_.GetVersion(&version);
  return fmt::format("{} {}.{}.{}", is_hostccl() ? "hostccl" : "NCCL", version / 10000, version / 100 % 100,
                     version % 100);
}

Status NcclLibrary::Check(ncclResult_t result, const char* call, ncclComm_t communicator) const {
  if (result == ncclSuccess) return {};
  const char* last = functions_.GetLastError(communicator);
  const ErrorKind kind = KindOf(result);
  return WithHint(MakeError(kind, "{}: {}{}{}", call, functions_.GetErrorString(result),
                            last != nullptr && *last != '\0' ? ": " : "", last != nullptr ? last : ""),
                  "NCCL_DEBUG=INFO shows more");
}

}  // namespace dynamiccl
