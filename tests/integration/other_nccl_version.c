// SPDX-License-Identifier: Apache-2.0
// Preloaded behind the object on one rank: an NCCL of another version, as far as one can ask it.
#include "src/nccl_abi/nccl_api.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN ncclResult_t pncclGetVersion(int* version) {
  *version = 22905;
  return ncclSuccess;
}

SHOWN ncclResult_t ncclGetVersion(int* version) {
  return pncclGetVersion(version);
}
