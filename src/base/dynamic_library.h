// SPDX-License-Identifier: Apache-2.0
// Owner of one dlopen handle. Plugins of NCCL and chained libraries are opened through it.
#pragma once

#include <string>
#include <utility>

#include "src/base/status.h"

namespace dynamiccl {

// Holds one reference on a shared object and gives it back with dlclose when it is destroyed. Symbols taken
// from it must not be used after that. Movable, not copyable; one thread at a time.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // Opens a library; `flags` are those of dlopen. The error is kNotFound and carries the text of dlerror().
  static Result<DynamicLibrary> Open(const std::string& path, int flags);
  // Opens the global scope of the process (dlopen(NULL)). NCCL looks for a plugin there if the plugin's
  // variable says STATIC_PLUGIN.
  static Result<DynamicLibrary> Global();

  // Returns the address of a symbol; null if the library is not open or has no such symbol.
  void* Symbol(const char* name) const;
  bool valid() const { return handle_ != nullptr; }

 private:
  void* handle_ = nullptr;
};

}  // namespace dynamiccl
