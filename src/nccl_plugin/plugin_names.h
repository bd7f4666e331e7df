// SPDX-License-Identifier: Apache-2.0
// The names under which NCCL looks for plugins. The rules are the same for tuners, profilers and networks
// (src/plugin/plugin_open.cc of NCCL 2.30). hostccl uses them to load plugins, and our plugin uses them to
// find the plugin to which it must chain.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

// Describes one kind of plugin. All texts are literals.
struct PluginKind {
  const char* log_name;          // "TUNER", as NCCL's log spells it
  const char* variable;          // "NCCL_TUNER_PLUGIN"
  const char* prefix;            // "libnccl-tuner"
  unsigned long log_subsystems;  // NCCL_SUBSYS_* bits under which NCCL logs the loading
};

// A network plugin is of interest because NCCL also looks into it for a tuner and a profiler.
extern const PluginKind kNetPlugin;
extern const PluginKind kProfilerPlugin;

// Returns the names to try with dlopen, in order. `value` is that of the kind's variable (null: not set). An
// empty list means that the user wants no plugin ("none"). An empty name stands for the process itself
// (STATIC_PLUGIN, or any prefix of that word, as NCCL compares).
std::vector<std::string> PluginCandidates(const PluginKind& kind, const char* value);

// Returns the candidates for NCCL_NET_PLUGIN, which may list several names separated by commas.
std::vector<std::string> NetPluginCandidates(const char* value);

}  // namespace dynamiccl
