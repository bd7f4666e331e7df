// SPDX-License-Identifier: Apache-2.0
// dlopen, dlsym and dlclose behind the owner of dynamic_library.h.
#include "src/base/dynamic_library.h"

#include <dlfcn.h>

namespace dynamiccl {

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  if (this != &other) {
    if (handle_ != nullptr) ::dlclose(handle_);
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Result<DynamicLibrary> DynamicLibrary::Open(const std::string& path, int flags) {
  DynamicLibrary library;
  library.handle_ = ::dlopen(path.c_str(), flags);
  if (library.handle_ == nullptr) return MakeError(ErrorKind::kNotFound, "{}", ::dlerror());
  return library;
}

Result<DynamicLibrary> DynamicLibrary::Global() {
  DynamicLibrary library;
  library.handle_ = ::dlopen(nullptr, RTLD_NOW);
  if (library.handle_ == nullptr) return MakeError(ErrorKind::kNotFound, "{}", ::dlerror());
  return library;
}

void* DynamicLibrary::Symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace dynamiccl
