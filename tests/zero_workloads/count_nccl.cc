// SPDX-License-Identifier: Apache-2.0
// Preloaded under dynamiccl-zero: counts what crosses the NCCL boundary, and writes one line "<function>
// <calls> <elements>" for each function to $COUNT_NCCL_FILE.<process id> at the end, and one line "<function>
// <elements>" for each call, in order, to $COUNT_NCCL_SEQUENCE.<process id>. Elements are those of the full
// buffer.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace {

struct Call {
  const char* function;
  size_t elements;
};

struct Count {
  const char* function;
  long calls = 0;
  long elements = 0;
};

struct Counts {
  Count all_reduce{"AllReduce"}, reduce_scatter{"ReduceScatter"}, all_gather{"AllGather"};
  std::vector<Call> sequence;

  ~Counts() {
    WriteTotals();
    WriteSequence();
  }

  void WriteTotals() const {
    const char* path = std::getenv("COUNT_NCCL_FILE");
    if (path == nullptr) return;
    std::ofstream file(std::string(path) + "." + std::to_string(getpid()));
    for (const Count* count : {&all_reduce, &reduce_scatter, &all_gather}) {
      file << count->function << " " << count->calls << " " << count->elements << "\n";
    }
  }

  void WriteSequence() const {
    const char* path = std::getenv("COUNT_NCCL_SEQUENCE");
    if (path == nullptr) return;
    std::ofstream file(std::string(path) + "." + std::to_string(getpid()));
    for (const Call& call : sequence) file << call.function << " " << call.elements << "\n";
  }
};

Counts counts;

void Add(Count* count, size_t elements) {
  ++count->calls;
  count->elements += static_cast<long>(elements);
  counts.sequence.push_back({count->function, elements});
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
