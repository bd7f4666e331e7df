// SPDX-License-Identifier: Apache-2.0
// The library in which NCCL would have looked for a plugin without us.
#pragma once

#include <string>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl {

// By NCCL's search order: what `named` says, as in the kind's variable (empty: the default name), else the
// network plugin. An error when there is none, and when that is this object itself, under whatever name:
// `symbol` is one that this object shows.
Result<DynamicLibrary> OpenPluginAsNccl(const PluginKind& kind, const std::string& named, const char* symbol);

}  // namespace dynamiccl
