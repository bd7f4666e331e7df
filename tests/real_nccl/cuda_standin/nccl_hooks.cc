// SPDX-License-Identifier: Apache-2.0
// Replaces a few functions of NCCL (BSD-3-Clause or Apache-2.0, depending on the release). Names are compared
// only up to parameters that differ between releases. Clones that the compiler split off have a '.' in their
// names, and keep their code.
#include "tests/real_nccl/cuda_standin/nccl_hooks.h"

#include <cstdint>
#include <cstdlib>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

constexpr int kNcclSuccess = 0;

// Tells NCCL which node a rank is on. One process may hold the ranks of several nodes, so the thread's place
// decides. Where nodes are separate processes, NCCL_HOSTID makes their hashes differ.
uint64_t HostHash() {
  constexpr uint64_t kAnyHash = 0x5eed0000;
  uint64_t hash = kAnyHash + static_cast<uint64_t>(ThisPlace().node) * 0x10001;
  const char* host = std::getenv("NCCL_HOSTID");
  for (; host != nullptr && *host != '\0'; ++host) hash = hash * 33 + static_cast<uint64_t>(*host);
  return hash;
}

// Replaces ncclProxySaveOp(comm, op, &needed) and reports that no operation needs the proxy thread. The proxy
// thread would wait for ever for a kernel, and ncclCommDestroy would wait for the proxy thread.
int NoProxyOperation(void*, void*, bool* needed) {
  if (needed != nullptr) *needed = false;
  return kNcclSuccess;
}

// Replaces ncclCollPreconnect. Nothing is sent, so nothing needs a connection, and the cost tables stay the
// same. With CUDA_STANDIN_CONNECT=1 NCCL keeps its own function. Ranks then connect at the first call of each
// algorithm, and errors of this step show.
int SkipConnection() {
  return kNcclSuccess;
}

bool Connects() {
  const char* value = std::getenv("CUDA_STANDIN_CONNECT");
  return value != nullptr && *value == '1';
}

bool IsClone(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

}  // namespace

const void* FindNcclHook(std::string_view name) {
  if (IsClone(name)) return nullptr;
  if (name == "_Z11getHostHashv") return reinterpret_cast<const void*>(&HostHash);
  if (name.starts_with("_Z15ncclProxySaveOp")) return reinterpret_cast<const void*>(&NoProxyOperation);
  if (!Connects() &&
      (name == "_Z18ncclCollPreconnectP8ncclCommPb" || name == "_Z22ncclCollPreconnectFuncP12ncclAsyncJob")) {
    return reinterpret_cast<const void*>(&SkipConnection);
  }
  return nullptr;
}

}  // namespace cuda_standin
