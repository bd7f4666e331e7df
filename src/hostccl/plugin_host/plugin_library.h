// SPDX-License-Identifier: Apache-2.0
// Opens the shared object in which NCCL would look for a plugin (src/nccl_plugin/plugin_names.h has the
// search order).
#pragma once

#include <optional>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/plugin_names.h"

namespace dynamiccl::hostccl {

// The first candidate of the kind that opens, otherwise the first network plugin that does, which may contain
// a tuner or a profiler too. Nothing when neither opens or the variable says "none". Attempts are logged as
// NCCL does.
std::optional<DynamicLibrary> OpenPluginLibrary(const PluginKind& kind);

}  // namespace dynamiccl::hostccl
