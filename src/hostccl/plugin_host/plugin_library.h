// SPDX-License-Identifier: Apache-2.0
// Which shared object a plugin is looked for in: NCCL's search order, the same for tuners and profilers
// (src/plugin/plugin_open.cc of NCCL 2.30).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/dynamic_library.h"

namespace dynamiccl::hostccl {

// One kind of plugin: "tuner" is named by NCCL_TUNER_PLUGIN and called libnccl-tuner.so by default.
struct PluginKind {
  const char* log_name;  // "TUNER", as NCCL's log spells it
  const char* variable;  // "NCCL_TUNER_PLUGIN"
  const char* prefix;    // "libnccl-tuner"
  unsigned long log_subsystems;
};

// Names to hand to dlopen in order, for a value of the kind's variable (null: not set). Empty: no plugin is
// wanted. An empty name stands for the process itself (STATIC_PLUGIN, or any prefix of that word, as NCCL
// compares).
std::vector<std::string> PluginCandidates(const PluginKind& kind, const char* value);

// The same for NCCL_NET_PLUGIN, which may list several names separated by commas.
std::vector<std::string> NetPluginCandidates(const char* value);

// The library in which the symbols are to be looked up: the first candidate of the kind that opens, else the
// first network plugin that does. Nothing when there is neither, or when the variable says "none".
std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind);

}  // namespace dynamiccl::hostccl
