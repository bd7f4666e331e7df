// SPDX-License-Identifier: Apache-2.0
// Tuner version 7 is the newest form itself and needs no conversion.
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {

bool FindTunerV7(const DynamicLibrary& library, TunerInterface& out) {
  const auto* tuner = static_cast<const ncclTuner_v7_t*>(library.Symbol("ncclTunerPlugin_v7"));
  if (tuner == nullptr) return false;
  out = {*tuner, 7};
  return true;
}

}  // namespace dynamiccl
