// SPDX-License-Identifier: Apache-2.0
// Searches for a plugin's library, and writes the lines that NCCL logs about the search.
#include "src/hostccl/plugin_host/plugin_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// Opens the first of the candidates that can be opened. RTLD_LOCAL keeps two plugins from seeing each other's
// symbols.
std::optional<DynamicLibrary> OpenFirst(const PluginKind& kind, const std::vector<std::string>& candidates) {
  for (const std::string& name : candidates) {
    auto library =
        name.empty() ? DynamicLibrary::Global() : DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return std::move(*library);
    Info(kind.log_subsystems, "{}/Plugin: Could not find: {}. {}", kind.log_name, name,
         library.error().message);
  }
  return std::nullopt;
}

}  // namespace

std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind) {
  const char* value = std::getenv(kind.variable);
  if (value != nullptr) Info(NCCL_SUBSYS_ENV, "{} set by environment to {}", kind.variable, value);
  const std::vector<std::string> candidates = PluginCandidates(kind, value);
  if (candidates.empty()) return std::nullopt;
  if (auto library = OpenFirst(kind, candidates)) return library;
  return OpenFirst(kNetPlugin, NetPluginCandidates(std::getenv(kNetPlugin.variable)));
}

}  // namespace dynamiccl::hostccl
