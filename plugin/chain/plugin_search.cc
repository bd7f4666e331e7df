// SPDX-License-Identifier: Apache-2.0
#include "plugin/chain/plugin_search.h"

#include <dlfcn.h>

#include "plugin/border/nccl_variable.h"

namespace dynamiccl {
namespace {

// Opens the first candidate that can be opened, like NCCL.
Result<DynamicLibrary> OpenFirst(const std::vector<std::string>& candidates) {
  Error last{ErrorKind::kNotFound, "no name to look for", {}};
  for (const std::string& name : candidates) {
    auto library =
        name.empty() ? DynamicLibrary::Global() : DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    last = library.error();
  }
  return tl::unexpected(last);
}

const void* ObjectOf(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) == 0 ? nullptr : info.dli_fbase;
}

// True if the library is this object itself. An object that called itself as its plugin would recurse without
// end.
bool IsThisObject(const DynamicLibrary& library, const char* symbol) {
  const void* const found = library.Symbol(symbol);
  return found != nullptr && ObjectOf(found) == ObjectOf(reinterpret_cast<const void*>(&IsThisObject));
}

}  // namespace

Result<DynamicLibrary> OpenPluginAsNccl(const PluginKind& kind, const std::string& named,
                                        const char* symbol) {
  auto library = OpenFirst(PluginCandidates(kind, named.empty() ? nullptr : named.c_str()));
  if (!library) {
    const auto net = NcclVariable(kNetPlugin.variable);
    auto inside_net = OpenFirst(NetPluginCandidates(net ? net->c_str() : nullptr));
    if (!inside_net) return library;
    library = std::move(inside_net);
  }
  if (IsThisObject(*library, symbol)) return MakeError(ErrorKind::kNotFound, "that is this object itself");
  return library;
}

}  // namespace dynamiccl
