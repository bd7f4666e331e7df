// SPDX-License-Identifier: Apache-2.0
// Makes a list of names in the order of NCCL's rules. If the variable is not set, the list is the default
// name. "none" gives an empty list, and a prefix of STATIC_PLUGIN the process itself. A path or "lib*.so" is
// taken as it is. Any other NAME is tried as NAME and as libnccl-KIND-NAME.so.
#include "src/nccl_plugin/plugin_names.h"

#include <fmt/format.h>
#include <strings.h>

#include <sstream>

#include "src/nccl_abi/tuner_types.h"

namespace dynamiccl {

const PluginKind kNetPlugin{"NET", "NCCL_NET_PLUGIN", "libnccl-net", NCCL_SUBSYS_INIT | NCCL_SUBSYS_NET};

const PluginKind kProfilerPlugin{"PROFILER", "NCCL_PROFILER_PLUGIN", "libnccl-profiler", NCCL_SUBSYS_INIT};

namespace {

// NCCL compares only as many letters as the value has, so "s" already means STATIC_PLUGIN.
bool IsStatic(const std::string& name) {
  return ::strncasecmp(name.c_str(), "STATIC_PLUGIN", name.size()) == 0;
}

// "lib<something>.so" is taken as a file name and not as the NAME of a plugin.
bool IsFileName(const std::string& name) {
  return name.rfind("lib", 0) == 0 && name.size() > 3 && name.rfind(".so") == name.size() - 3;
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

// Each name of the list contributes its own candidates, in order.
std::vector<std::string> NetPluginCandidates(const char* value) {
  if (value == nullptr || *value == '\0') return PluginCandidates(kNetPlugin, value);
  std::vector<std::string> all;
  std::istringstream names(value);
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty()) continue;
    const std::vector<std::string> candidates = PluginCandidates(kNetPlugin, name.c_str());
    all.insert(all.end(), candidates.begin(), candidates.end());
  }
  return all;
}

}  // namespace dynamiccl
