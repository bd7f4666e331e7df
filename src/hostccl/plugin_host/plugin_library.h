// SPDX-License-Identifier: Apache-2.0
// Opens the shared object that a plugin is looked for in, by NCCL's search order
// (src/nccl_plugin/plugin_names.h).
#pragma once

#include <optional>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl::hostccl {

// The library in which the symbols are to be looked up: the first candidate of the kind that opens, else the
// first network plugin that does. Nothing when there is neither, or when the variable says "none".
std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind);

}  // namespace dynamiccl::hostccl
