// SPDX-License-Identifier: Apache-2.0
// Owner of one dlopen handle.
#pragma once

#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // `flags` as for dlopen. The error carries dlerror()'s text.
  static Result<DynamicLibrary> Open(const std::string& path, int flags);
  // The global scope of the process (dlopen(NULL)): what STATIC_PLUGIN means to NCCL.
  static Result<DynamicLibrary> Global();

  // Null when the symbol is absent.
  void* Symbol(const char* name) const;
  bool valid() const { return handle_ != nullptr; }

 private:
  void* handle_ = nullptr;
};

}  // namespace dynamiccl
