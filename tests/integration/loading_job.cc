// SPDX-License-Identifier: Apache-2.0
// A program that is not linked to NCCL. It loads NCCL in one of the ways that programs use.
//   loading_job <unused> <calls> local <libnccl> | two <libnccl> <libnccl> | reopen <libnccl>
//                                extension <library> | deepbind <library>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"

namespace {

void* Open(const char* path, int flags) {
  void* handle = ::dlopen(path, RTLD_NOW | flags);
  if (handle != nullptr) return handle;
  std::fprintf(stderr, "loading_job: %s\n", ::dlerror());
  std::_Exit(3);
}

template <typename Function>
Function Find(void* handle, const char* name) {
  void* address = ::dlsym(handle, name);
  if (address == nullptr) std::_Exit(4);
  return reinterpret_cast<Function>(address);
}
#define FIND(name) const auto name = Find<decltype(&::name)>(handle, #name)

// One rank. Its functions are looked up by name.
struct PrivateNccl {
  void* handle = nullptr;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  explicit PrivateNccl(const char* path) : handle(Open(path, RTLD_LOCAL)) {
    FIND(ncclGetUniqueId);
    FIND(ncclCommInitRank);
    FIND(hostcclStreamCreate);
    ncclUniqueId id{};
    if (hostcclStreamCreate(&stream) != ncclSuccess || ncclGetUniqueId(&id) != ncclSuccess) std::_Exit(5);
    if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) std::_Exit(6);
  }
  void AllReduceAndBroadcast() {
    FIND(ncclAllReduce);
    FIND(ncclBcast);
    FIND(hostcclStreamSynchronize);
    float data[4] = {1, 2, 3, 4};
    if (ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, comm, stream) != ncclSuccess) std::_Exit(7);
    if (ncclBcast(data, 4, ncclFloat32, 0, comm, stream) != ncclSuccess) std::_Exit(8);
    if (hostcclStreamSynchronize(stream) != ncclSuccess || data[3] != 4) std::_Exit(9);
  }
  void Close() {
    FIND(ncclCommDestroy);
    FIND(hostcclStreamDestroy);
    if (ncclCommDestroy(comm) != ncclSuccess || hostcclStreamDestroy(stream) != ncclSuccess) std::_Exit(10);
    ::dlclose(handle);
  }
};

int UseExtension(const char* path, int flags, int calls) {
  return Find<int (*)(int)>(Open(path, flags), "UseNccl")(calls);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int calls = std::atoi(argv[2]);
  const std::string way = argv[3];
  if (way == "extension") return UseExtension(argv[4], RTLD_LOCAL, calls);
  if (way == "deepbind") return UseExtension(argv[4], RTLD_LOCAL | RTLD_DEEPBIND, calls);
  if (way == "failing") return Open(argv[4], RTLD_LOCAL) != nullptr ? 11 : 4;  // before its first call
  for (int times = 0; times < (way == "reopen" ? 5 : 1); ++times) {
    PrivateNccl first(argv[4]);
    if (way == "two") {
      PrivateNccl second(argv[5]);
      for (int i = 0; i < calls; ++i) {
        first.AllReduceAndBroadcast();
        second.AllReduceAndBroadcast();
      }
      second.Close();
    } else {
      for (int i = 0; i < calls; ++i) first.AllReduceAndBroadcast();
    }
    first.Close();
  }
  return 0;
}
