// SPDX-License-Identifier: Apache-2.0
// Finds the library in which NCCL would have looked for a plugin without DynamICCL.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl {

// Opens the plugin in NCCL's search order: first the name in `named`, which is the value of the kind's
// variable (empty: the default name), then the network plugin. Returns an error if there is no plugin, or if
// the plugin is this object itself under any name; `symbol` is one that this object exports.
Result<DynamicLibrary> OpenPluginAsNccl(const PluginKind& kind, const std::string& named, const char* symbol);

}  // namespace dynamiccl
