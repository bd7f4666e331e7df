// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/real_nccl.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "src/base/settings.h"

namespace dynamiccl {
namespace {

constexpr size_t kFunctions = static_cast<size_t>(RealFunction::kCount);

constexpr const char* kNames[kFunctions] = {
#define DYNAMICCL_REAL_NAME(result, name, parameters, arguments) #name,
    DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_REAL_NAME)
#undef DYNAMICCL_REAL_NAME
};

std::atomic<void*> g_addresses[kFunctions];

// NCCL defines every function as pncclX and, weakly, as ncclX; hostccl and stand-ins may have the second name
// only.
void* SymbolIn(void* handle, const char* name) {
  char symbol[64];
  std::snprintf(symbol, sizeof(symbol), "pnccl%s", name);
  if (void* address = ::dlsym(handle, symbol)) return address;
  return ::dlsym(handle, symbol + 1);
}

// A handle on an object that is already in the process; never loads a second copy.
void* LoadedLibrary(const char* path) {
  return ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

int KeepIfNccl(dl_phdr_info* info, size_t, void* found) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libnccl.so") == nullptr) return 0;
  *static_cast<void**>(found) = LoadedLibrary(info->dlpi_name);
  return *static_cast<void**>(found) != nullptr ? 1 : 0;
}

void* NcclAmongLoadedObjects() {
  void* handle = nullptr;
  ::dl_iterate_phdr(KeepIfNccl, &handle);
  return handle;
}

void* NcclOfTheSetting() {
  const std::string path = TextSetting(Setting::kNcclLibrary);
  return path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

void* Find(const char* name) {
  if (void* address = SymbolIn(RTLD_NEXT, name)) return address;
  void* handle = LoadedLibrary("libnccl.so.2");
  if (handle == nullptr) handle = NcclAmongLoadedObjects();
  if (handle == nullptr) handle = NcclOfTheSetting();
  return handle == nullptr ? nullptr : SymbolIn(handle, name);
}

}  // namespace

void* RealAddress(RealFunction function) noexcept {
  std::atomic<void*>& slot = g_addresses[static_cast<size_t>(function)];
  void* address = slot.load(std::memory_order_acquire);
  if (address == nullptr) {
    address = Find(kNames[static_cast<size_t>(function)]);
    slot.store(address, std::memory_order_release);
  }
  return address;
}

void* RealAddress(const char* name_without_nccl) noexcept {
  return Find(name_without_nccl);
}

}  // namespace dynamiccl
