// SPDX-License-Identifier: Apache-2.0
// Replacements for functions of NCCL (BSD-3-Clause or Apache-2.0 by release). Their names are matched up to
// the parameters that releases changed; clones that the compiler split off (a '.' in the name) are left
// alone.
#include "tests/real_nccl/cuda_standin/nccl_hooks.h"

#include <cstdint>
#include <cstdlib>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

constexpr int kNcclSuccess = 0;

// Which node a rank is on. One process holds the ranks of many nodes, so the thread's place decides, where
// NCCL_HOSTID does not.
uint64_t HostHash() {
  constexpr uint64_t kAnyHash = 0x5eed0000;
  uint64_t hash = kAnyHash + static_cast<uint64_t>(ThisPlace().node) * 0x10001;
  const char* host = std::getenv("NCCL_HOSTID");
  for (; host != nullptr && *host != '\0'; ++host) hash = hash * 33 + static_cast<uint64_t>(*host);
  return hash;
}

// ncclProxySaveOp(comm, op, &needed): no operation needs the proxy thread, which would wait for ever for a
// kernel to feed it, and ncclCommDestroy for the thread.
int NoProxyOperation(void*, void*, bool* needed) {
  if (needed != nullptr) *needed = false;
  return kNcclSuccess;
}

// ncclCollPreconnect: nothing will be sent, so nothing need be connected. Cost tables are the same with and
// without. CUDA_STANDIN_CONNECT=1 leaves the function to NCCL: then ranks connect at the first call of each
// algorithm, and what goes wrong there is seen.
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
