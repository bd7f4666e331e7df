// SPDX-License-Identifier: Apache-2.0
// Counts what the ranks of dynamiccl-zero send at the NCCL boundary. It is preloaded into the program's fork
// server. At the end it writes a line "<function> <calls> <elements>" for each function to
// $COUNT_NCCL_FILE.<process id>. It also writes a line "<function> <elements>" for each call, in order, to
// $COUNT_NCCL_SEQUENCE.<process id>. Elements are those of the full buffer. A function on the n-th
// communicator that the process split off is named "<function>.<n>".
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace {

struct Call {
  std::string function;
  size_t elements;
};

struct Count {
  long calls = 0;
  long elements = 0;
};

struct Counts {
  std::map<std::string, Count> functions{
      {"AllGather", {}}, {"AllReduce", {}}, {"Broadcast", {}}, {"Reduce", {}}, {"ReduceScatter", {}}};
  std::vector<Call> sequence;
  std::vector<ncclComm_t> split;  // communicators in the order in which they were split off

  void WriteTotals() const {
    const char* path = std::getenv("COUNT_NCCL_FILE");
    if (path == nullptr) return;
    std::ofstream file(std::string(path) + "." + std::to_string(getpid()));
    for (const auto& [function, count] : functions) {
      file << function << " " << count.calls << " " << count.elements << "\n";
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

void Add(std::string function, ncclComm_t comm, size_t elements) {
  const auto number = std::find(counts.split.begin(), counts.split.end(), comm);
  if (number != counts.split.end()) function += "." + std::to_string(number - counts.split.begin() + 1);
  Count& count = counts.functions[function];
  ++count.calls;
  count.elements += static_cast<long>(elements);
  counts.sequence.push_back({function, elements});
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

extern "C" void rank_ends() {
  counts.WriteTotals();
  counts.WriteSequence();
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  Add("AllReduce", comm, count);
  return Next(ncclAllReduce, "ncclAllReduce")(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Add("ReduceScatter", comm, count * Ranks(comm));
  return Next(ncclReduceScatter, "ncclReduceScatter")(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Add("AllGather", comm, count * Ranks(comm));
  return Next(ncclAllGather, "ncclAllGather")(send, receive, count, type, comm, stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  Add("Reduce", comm, count);
  return Next(ncclReduce, "ncclReduce")(send, receive, count, type, op, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  Add("Broadcast", comm, count);
  return Next(ncclBroadcast, "ncclBroadcast")(send, receive, count, type, root, comm, stream);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  const ncclResult_t result = Next(ncclCommSplit, "ncclCommSplit")(comm, color, key, child, config);
  if (result == ncclSuccess) counts.split.push_back(*child);
  return result;
}

#pragma GCC visibility pop
