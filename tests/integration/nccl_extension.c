/* SPDX-License-Identifier: Apache-2.0
   A library that uses NCCL, as a Python extension does. Its one rank makes `calls` AllReduces and Bcasts. */
#include <stddef.h>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"

/* Contains the version text, as a library does that is statically linked to NCCL. */
__attribute__((visibility("default"))) const char* UsedNccl(void) {
  return NCCL_VERSION_TEXT;
}

__attribute__((visibility("default"))) int UseNccl(int calls) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  cudaStream_t stream = NULL;
  float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  if (hostcclStreamCreate(&stream) != ncclSuccess || ncclGetUniqueId(&id) != ncclSuccess) return 1;
  if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return 2;
  for (int i = 0; i < calls; ++i) {
    if (ncclAllReduce(data, data, 8, ncclFloat32, ncclSum, comm, stream) != ncclSuccess) return 3;
    if (ncclBcast(data, 8, ncclFloat32, 0, comm, stream) != ncclSuccess) return 4;
  }
  if (hostcclStreamSynchronize(stream) != ncclSuccess || data[7] != 8) return 5;
  if (ncclCommDestroy(comm) != ncclSuccess || hostcclStreamDestroy(stream) != ncclSuccess) return 6;
  return 0;
}
