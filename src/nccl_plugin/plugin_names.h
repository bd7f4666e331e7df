// SPDX-License-Identifier: Apache-2.0
// What NCCL calls the shared objects in which it looks for plugins: the same rules for tuners and profilers
// (src/plugin/plugin_open.cc of NCCL 2.30).
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

// One kind of plugin: "tuner" is named by NCCL_TUNER_PLUGIN and called libnccl-tuner.so by default.
struct PluginKind {
  const char* log_name;  // "TUNER", as NCCL's log spells it
  const char* variable;  // "NCCL_TUNER_PLUGIN"
  const char* prefix;    // "libnccl-tuner"
  unsigned long log_subsystems;
};

extern const PluginKind kNetPlugin;
extern const PluginKind kProfilerPlugin;

// Names to hand to dlopen in order, for a value of the kind's variable (null: not set). Empty: no plugin is
// wanted. An empty name stands for the process itself (STATIC_PLUGIN, or any prefix of that word, as NCCL
// compares).
std::vector<std::string> PluginCandidates(const PluginKind& kind, const char* value);

// The same for NCCL_NET_PLUGIN, which may list several names separated by commas.
std::vector<std::string> NetPluginCandidates(const char* value);

}  // namespace dynamiccl
