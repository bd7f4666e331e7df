// SPDX-License-Identifier: Apache-2.0
// Adapter for tuner version 5, which is version 6 without getChunkSize.
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {

bool FindTunerV5(const DynamicLibrary& library, TunerInterface& out) {
  const auto* tuner = static_cast<const ncclTuner_v5_t*>(library.Symbol("ncclTunerPlugin_v5"));
  if (tuner == nullptr) return false;
  out = {{.name = tuner->name,
          .init = tuner->init,
          .getCollInfo = tuner->getCollInfo,
          .finalize = tuner->finalize,
          .getChunkSize = nullptr},
         5};
  return true;
}

}  // namespace dynamiccl
