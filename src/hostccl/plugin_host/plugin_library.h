// SPDX-License-Identifier: Apache-2.0
// Opens the library in which NCCL would look for a plugin. src/nccl_plugin/plugin_names.h has the search
// order.
#pragma once

#include <optional>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl::hostccl {

// Opens the first library for this kind of plugin that can be opened. If there is none, it opens the first
// network plugin that can be opened, which may also contain a tuner or a profiler. Returns nothing if no
// library can be opened or the variable is "none". Attempts are logged as in NCCL.
std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind);

}  // namespace dynamiccl::hostccl
