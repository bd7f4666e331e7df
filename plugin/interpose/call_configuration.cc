// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_configuration.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl {

bool ChoosesItself(const ncclCollConfig_t* config) noexcept {
  if (config == nullptr) return false;
  ncclCollConfig_t given = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  std::memcpy(static_cast<void*>(&given), config, std::min(config->size, sizeof(given)));
  for (const int number : {given.minCTAs, given.maxCTAs, given.nvlsCTAs, given.CTAPolicy}) {
    if (number != NCCL_CONFIG_UNDEF_INT) return true;
  }
  return given.algSelection != nullptr;
}

}  // namespace dynamiccl
