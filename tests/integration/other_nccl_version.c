// SPDX-License-Identifier: Apache-2.0
// Preloaded behind the object on one rank. It makes ncclGetVersion return another version of NCCL.
#include "src/nccl_abi/nccl_api.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN ncclResult_t pncclGetVersion(int* version) {
  *version = 22905;
  return ncclSuccess;
}

SHOWN ncclResult_t ncclGetVersion(int* version) {
  return pncclGetVersion(version);
}
