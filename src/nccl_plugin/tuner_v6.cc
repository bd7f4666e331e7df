// SPDX-License-Identifier: Apache-2.0
// Tuner version 6 is the newest form itself and needs no conversion.
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {

bool FindTunerV6(const DynamicLibrary& library, TunerInterface& out) {
  const auto* tuner = static_cast<const ncclTuner_v6_t*>(library.Symbol("ncclTunerPlugin_v6"));
  if (tuner == nullptr) return false;
  out = {*tuner, 6};
  return true;
}

}  // namespace dynamiccl
