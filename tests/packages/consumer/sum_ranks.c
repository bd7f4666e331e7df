/* SPDX-License-Identifier: Apache-2.0
   Makes one AllReduce with NCCL's C API as rank RANK of WORLD_SIZE ranks. The unique id is passed in the file
   $UNIQUE_ID. */
#include <host_stream.h>
#include <nccl_api.h>
#include <phase_marker.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(call)                                                   \
  do {                                                                \
    ncclResult_t result = (call);                                     \
    if (result != ncclSuccess) {                                      \
      fprintf(stderr, "%s: %s\n", #call, ncclGetErrorString(result)); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static void WriteId(const char* path, const ncclUniqueId* id) {
  char beside[4096];
  snprintf(beside, sizeof(beside), "%s.tmp", path);
  FILE* file = fopen(beside, "wb");
  if (file == NULL || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) != 0 || rename(beside, path) != 0)
    exit(2);
}

static void ReadId(const char* path, ncclUniqueId* id) {
  FILE* file = NULL;
  while ((file = fopen(path, "rb")) == NULL) usleep(1000);
  if (fread(id, sizeof(*id), 1, file) != 1) exit(2);
  fclose(file);
}

int main(void) {
  const int rank = atoi(getenv("RANK")), n_ranks = atoi(getenv("WORLD_SIZE"));
  const char* path = getenv("UNIQUE_ID");
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    WriteId(path, &id);
  } else {
    ReadId(path, &id);
  }
  ncclComm_t comm;
  cudaStream_t stream;
  CHECK(ncclCommInitRank(&comm, n_ranks, id, rank));
  CHECK(hostcclStreamCreate(&stream));
  if (dynamicclMarkPhase != NULL) dynamicclMarkPhase(DYNAMICCL_PHASE_FORWARD, 0, 0);
  float value = (float)(rank + 1);
  CHECK(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, stream));
  CHECK(hostcclStreamSynchronize(stream));
  printf("sum %g\n", value);
  CHECK(ncclCommDestroy(comm));
  return value == (float)(n_ranks * (n_ranks + 1) / 2) ? 0 : 1;
}
