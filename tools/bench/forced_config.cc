// SPDX-License-Identifier: Apache-2.0
// Looks up the functions of the sweep's tuner plugin and calls them.
#include "tools/bench/forced_config.h"

#include <dlfcn.h>

namespace dynamiccl {

Result<ForcedConfig> ForcedConfig::Open(const std::string& path) {
  ForcedConfig forced;
  DYNAMICCL_TRY(forced.library_, DynamicLibrary::Open(path, RTLD_NOW | RTLD_LOCAL));
  forced.force_ = reinterpret_cast<decltype(forced.force_)>(forced.library_.Symbol("dynamicclSweepForce"));
  forced.view_ = reinterpret_cast<decltype(forced.view_)>(forced.library_.Symbol("dynamicclSweepView"));
  if (forced.force_ == nullptr || forced.view_ == nullptr)
    return MakeError(ErrorKind::kUnsupported, "{} is not the sweep's tuner", path);
  return forced;
}

void ForcedConfig::Force(const CollectiveConfig& config) const {
  force_(config.leaves_nccl_alone() ? -1 : static_cast<int>(config.algorithm),
         static_cast<int>(config.protocol), config.channels);
}

dynamicclSweepView_t ForcedConfig::View() const {
  dynamicclSweepView_t view;
  view_(&view);
  return view;
}

}  // namespace dynamiccl
