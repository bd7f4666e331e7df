// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/real_nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "src/base/settings.h"

namespace dynamiccl {
namespace {

constexpr const char* kNames[kRealFunctions] = {
#define DYNAMICCL_REAL_NAME(since, door, result, name, parameters, arguments) #name,
    DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_REAL_NAME) DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_REAL_NAME)
#undef DYNAMICCL_REAL_NAME
};

// An address inside each loaded copy of NCCL; null if the copy is not known.
std::atomic<void*> g_inside[kMaxNcclCopies];

// NCCL defines every function as pncclX and, weakly, as ncclX. hostccl and stand-ins may define only the
// second name.
void* SymbolIn(void* handle, const char* name) {
  char symbol[64];
  std::snprintf(symbol, sizeof(symbol), "pnccl%s", name);
  if (void* address = ::dlsym(handle, symbol)) return address;
  return ::dlsym(handle, symbol + 1);
}

// Returns a handle of an object that is already in the process; never loads a second copy.
void* LoadedLibrary(const char* path) {
  return ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

// Callback of dl_iterate_phdr: ends the walk at the first object whose name contains libnccl.so.
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

// Only this function loads an NCCL that the program itself did not load.
void* NcclOfTheSetting() {
  const std::string path = TextSetting(Setting::kNcclLibrary);
  return path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

// Keeps the shared object that contains `address` loaded, by a handle that is never closed. Returns
// `address`.
void* KeepLoaded(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) != 0 && info.dli_fname != nullptr) LoadedLibrary(info.dli_fname);
  return address;
}

// Searches for a function of the copy of NCCL that the program reaches by name (number 0). RealAddress
// describes the order of the search.
void* FindByName(const char* name) {
  if (void* address = SymbolIn(RTLD_NEXT, name)) return KeepLoaded(address);
  void* handle = LoadedLibrary("libnccl.so.2");
  if (handle == nullptr) handle = NcclAmongLoadedObjects();
  if (handle == nullptr) handle = NcclOfTheSetting();
  return handle == nullptr ? nullptr : SymbolIn(handle, name);
}

void* FindInCopy(int copy, const char* name) {
  Dl_info info{};
  void* const inside = g_inside[copy].load(std::memory_order_acquire);
  if (inside == nullptr || ::dladdr(inside, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* handle = LoadedLibrary(info.dli_fname);
  return handle == nullptr ? nullptr : SymbolIn(handle, name);
}

}  // namespace

std::atomic<void*> real_addresses[kMaxNcclCopies][kRealFunctions];
constinit thread_local int copy_in_use = 0;

void* FindHostcclFunction(const char* name) noexcept {
  if (void* address = ::dlsym(RTLD_DEFAULT, name)) return address;
  Dl_info info{};
  void* const nccl = RealAddress(RealFunction::kGetVersion);
  if (nccl == nullptr || ::dladdr(nccl, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* const handle = LoadedLibrary(info.dli_fname);
  if (handle == nullptr) return nullptr;
  void* const address = ::dlsym(handle, name);
  ::dlclose(handle);
  return address;
}

bool RunsOverHostccl() noexcept {
  return FindHostcclFunction("hostcclStreamCreate") != nullptr;
}

const char* NameOf(RealFunction function) {
  return kNames[static_cast<size_t>(function)];
}

void* FindRealAddress(RealFunction function) noexcept {
  const char* const name = NameOf(function);
  void* const address = copy_in_use == 0 ? FindByName(name) : FindInCopy(copy_in_use, name);
  real_addresses[copy_in_use][static_cast<size_t>(function)].store(address, std::memory_order_release);
  return address;
}

void* RealAddressInside(const void* caller, RealFunction function) noexcept {
  Dl_info info{};
  if (::dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* handle = LoadedLibrary(info.dli_fname);
  // Looks up the strong name pncclX, because the public name ncclX may be defined by this object.
  char symbol[64];
  std::snprintf(symbol, sizeof(symbol), "pnccl%s", NameOf(function));
  void* address = handle == nullptr ? nullptr : ::dlsym(handle, symbol);
  Dl_info found{};
  const bool inside =
      address != nullptr && ::dladdr(address, &found) != 0 && found.dli_fbase == info.dli_fbase;
  if (handle != nullptr) ::dlclose(handle);
  return inside ? address : nullptr;
}

void SetRealAddress(int copy, RealFunction function, void* address) noexcept {
  g_inside[copy].store(address, std::memory_order_release);
  real_addresses[copy][static_cast<size_t>(function)].store(address, std::memory_order_release);
}

void ForgetCopy(int copy) noexcept {
  g_inside[copy].store(nullptr, std::memory_order_release);
  for (auto& address : real_addresses[copy]) address.store(nullptr, std::memory_order_release);
}

CopyInUse::CopyInUse(int copy) : before_(copy_in_use) {
  copy_in_use = copy;
}
CopyInUse::~CopyInUse() {
  copy_in_use = before_;
}

int NcclVersion() {
  int version = 0;
  DYNAMICCL_FORWARD(GetVersion, &version);
  return version;
}

std::string NcclVersionName() {
  const int version = NcclVersion();
  return version == 0 ? "unknown"
                      : fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace dynamiccl
