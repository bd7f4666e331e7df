// SPDX-License-Identifier: Apache-2.0
// Tuner version 6: the newest form itself.
#include "src/hostccl/plugin_host/tuner_plugin.h"

namespace dynamiccl::hostccl {

bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out) {
  const auto* tuner = static_cast<const ncclTuner_v6_t*>(library.Symbol("ncclTunerPlugin_v6"));
  if (tuner == nullptr) return false;
  out = {*tuner, 6};
  return true;
}

}  // namespace dynamiccl::hostccl
