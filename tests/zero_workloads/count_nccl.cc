// SPDX-License-Identifier: Apache-2.0
// Preloaded under dynamiccl-zero: counts what crosses the NCCL boundary, and writes one line "<function>
// <calls> <elements>" for each function to $COUNT_NCCL_FILE.<process id> at the end. Elements are those of
// the full buffer.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "src/nccl_abi/nccl_api.h"

namespace {

struct Count {
  long calls = 0;
  long elements = 0;
};

struct Counts {
  Count all_reduce, reduce_scatter, all_gather;

  ~Counts() {
    const char* path = std::getenv("COUNT_NCCL_FILE");
    if (path == nullptr) return;
    std::ofstream file(std::string(path) + "." + std::to_string(getpid()));
    file << "AllReduce " << all_reduce.calls << " " << all_reduce.elements << "\n"
         << "ReduceScatter " << reduce_scatter.calls << " " << reduce_scatter.elements << "\n"
         << "AllGather " << all_gather.calls << " " << all_gather.elements << "\n";
  }
};

Counts counts;

void Add(Count* count, size_t elements) {
  ++count->calls;
  count->elements += static_cast<long>(elements);
}

size_t Ranks(ncclComm_t comm) {
  int ranks = 0;
  ncclCommCount(comm, &ranks);
  return static_cast<size_t>(ranks);
}

template <typename Function>
Function* Next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#pragma GCC visibility push(default)

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  Add(&counts.all_reduce, count);
  return Next(ncclAllReduce, "ncclAllReduce")(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Add(&counts.reduce_scatter, count * Ranks(comm));
  return Next(ncclReduceScatter, "ncclReduceScatter")(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Add(&counts.all_gather, count * Ranks(comm));
  return Next(ncclAllGather, "ncclAllGather")(send, receive, count, type, comm, stream);
}

#pragma GCC visibility pop
