// SPDX-License-Identifier: Apache-2.0
#include "plugin/chain/chained_profiler.h"

#include <fmt/format.h>

#include "plugin/chain/plugin_search.h"

namespace dynamiccl {

Result<ChainedProfiler> ChainedProfiler::Find(const std::string& named, int newest) {
  ChainedProfiler plugin;
  DYNAMICCL_TRY(auto library, OpenPluginAsNccl(kProfilerPlugin, named, "ncclProfiler_v7"));
  plugin.library = std::move(library);
  for (plugin.version = newest; plugin.version >= 1; --plugin.version) {
    plugin.interface = plugin.library.Symbol(fmt::format("ncclProfiler_v{}", plugin.version).c_str());
    if (plugin.interface != nullptr) return plugin;
  }
  return MakeError(ErrorKind::kUnsupported, "{} has none of ncclProfiler_v1 to _v{}",
                   named.empty() ? "the plugin that NCCL would load" : named, newest);
}

}  // namespace dynamiccl
