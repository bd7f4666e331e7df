// SPDX-License-Identifier: Apache-2.0
// Looks up every CUDA function at once, so that a missing function is an error at the start and not during a
// measurement.
#include "tools/bench/cuda/cuda_functions.h"

#include <dlfcn.h>

#include "tools/bench/nccl_library.h"

namespace dynamiccl::cuda {
namespace {

Result<DynamicLibrary> OpenRuntimeLibrary() {
  for (const char* name : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"}) {
    auto library = DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  return WithHint(MakeError(ErrorKind::kUnavailable, "libcudart.so, .13 and .12 were not found"),
                  fmt::format("put the CUDA runtime's folder in LD_LIBRARY_PATH, or {}", kHostcclFolder));
}

// Looks up the CUDA function `name` and stores it in `function`. Returns false if the library lacks the
// function.
template <typename F>
bool Resolve(const DynamicLibrary& library, const char* name, F& function) {
  function = reinterpret_cast<F>(library.Symbol(name));
  return function != nullptr;
}

tl::unexpected<dynamiccl::Error> Lacks(const char* library, const char* function) {
  return MakeError(ErrorKind::kUnsupported, "{} has no {}, which every CUDA release since 10 has", library,
                   function);
}

}  // namespace

Result<std::shared_ptr<const Runtime>> Runtime::Open() {
  auto runtime = std::make_shared<Runtime>();
  DYNAMICCL_TRY(runtime->library_, OpenRuntimeLibrary());
#define DYNAMICCL_RESOLVE(name, parameters)                     \
  if (!Resolve(runtime->library_, "cuda" #name, runtime->name)) \
    return Lacks("the CUDA runtime", "cuda" #name);
  DYNAMICCL_CUDA_RUNTIME_FUNCTIONS(DYNAMICCL_RESOLVE)
#undef DYNAMICCL_RESOLVE
  if (!Resolve(runtime->library_, "cudaGetErrorString", runtime->error_string_))
    return Lacks("the CUDA runtime", "cudaGetErrorString");
  return runtime;
}

Status Runtime::Check(Error error, const char* call) const {
  if (error == 0) return {};
  return MakeError(ErrorKind::kUnavailable, "{}: {}", call, error_string_(error));
}

Result<std::shared_ptr<const Driver>> Driver::Open() {
  auto driver = std::make_shared<Driver>();
  auto library = DynamicLibrary::Open("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return WithHint(
        MakeError(ErrorKind::kUnavailable, "libcuda.so.1: {}", library.error().message),
        fmt::format("NVIDIA's driver brings it; without a GPU put in LD_LIBRARY_PATH {}", kHostcclFolder));
  }
  driver->library_ = std::move(*library);
#define DYNAMICCL_RESOLVE(name, parameters) \
  if (!Resolve(driver->library_, "cu" #name, driver->name)) return Lacks("libcuda.so.1", "cu" #name);
  DYNAMICCL_CUDA_DRIVER_FUNCTIONS(DYNAMICCL_RESOLVE)
#undef DYNAMICCL_RESOLVE
  return driver;
}

Status Driver::Check(Error error, const char* call) const {
  if (error == 0) return {};
  const char* text = nullptr;
  if (GetErrorString(error, &text) != 0 || text == nullptr) text = "unknown error";
  return MakeError(ErrorKind::kUnavailable, "{}: {} ({})", call, text, error);
}

}  // namespace dynamiccl::cuda
