// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/plugin_host/plugin_library.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

constexpr PluginKind kNet{"NET", "NCCL_NET_PLUGIN", "libnccl-net", NCCL_SUBSYS_INIT | NCCL_SUBSYS_NET};

bool IsStatic(const std::string& name) {
  return ::strncasecmp(name.c_str(), "STATIC_PLUGIN", name.size()) == 0;
}

bool IsFileName(const std::string& name) {
  return name.rfind("lib", 0) == 0 && name.size() > 3 && name.rfind(".so") == name.size() - 3;
}

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

std::vector<std::string> PluginCandidates(const PluginKind& kind, const char* value) {
  const std::string prefix = kind.prefix;
  if (value == nullptr || *value == '\0') return {prefix + ".so"};
  const std::string name = value;
  if (::strcasecmp(value, "none") == 0) return {};
  if (IsStatic(name)) return {""};
  if (name.find('/') != std::string::npos || IsFileName(name)) return {name};
  return {name, fmt::format("{}-{}.so", prefix, name)};
}

std::vector<std::string> NetPluginCandidates(const char* value) {
  if (value == nullptr || *value == '\0') return PluginCandidates(kNet, value);
  std::vector<std::string> all;
  std::istringstream names(value);
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty()) continue;
    const std::vector<std::string> candidates = PluginCandidates(kNet, name.c_str());
    all.insert(all.end(), candidates.begin(), candidates.end());
  }
  return all;
}

std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind) {
  const char* value = std::getenv(kind.variable);
  if (value != nullptr) Info(NCCL_SUBSYS_ENV, "{} set by environment to {}", kind.variable, value);
  const std::vector<std::string> candidates = PluginCandidates(kind, value);
  if (candidates.empty()) return std::nullopt;
  if (auto library = OpenFirst(kind, candidates)) return library;
  return OpenFirst(kNet, NetPluginCandidates(std::getenv(kNet.variable)));
}

}  // namespace dynamiccl::hostccl
