// SPDX-License-Identifier: Apache-2.0
// Functions that in NCCL work on GPUs only. They exist so that programs link. Each returns ncclInvalidUsage
// and logs the reason (docs/hostccl.md).
#include <algorithm>
#include <cstring>

#include "src/hostccl/api_call.h"
#include "src/hostccl/communicator_handle.h"
#include "src/hostccl/nccl_export.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

namespace {

ncclResult_t RefuseOnHost(const char* function, const char* reason) {
  return Refuse(Error{ErrorKind::kUnsupported, fmt::format("{}: {}", function, reason), {}});
}

constexpr const char* kNoRma = "hostccl has no one-sided transfers: use ncclSend and ncclRecv";
constexpr const char* kNoSuspend =
    "hostccl's memory is host memory, which the system pages out by itself: there is nothing to suspend";
constexpr const char* kNoDevice = "hostccl runs on host memory: no GPU kernel can use a communicator";

}  // namespace

HOSTCCL_WEAK(PutSignal)
HOSTCCL_WEAK(Signal)
HOSTCCL_WEAK(WaitSignal)
HOSTCCL_WEAK(CommSuspend)
HOSTCCL_WEAK(CommResume)
HOSTCCL_WEAK(SetEncryption)

ncclResult_t pncclPutSignal(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                            unsigned int, ncclComm_t, cudaStream_t) {
  return RefuseOnHost("ncclPutSignal", kNoRma);
}

ncclResult_t pncclSignal(int, int, int, unsigned int, ncclComm_t, cudaStream_t) {
  return RefuseOnHost("ncclSignal", kNoRma);
}

ncclResult_t pncclWaitSignal(int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t) {
  return RefuseOnHost("ncclWaitSignal", kNoRma);
}

ncclResult_t pncclCommSuspend(ncclComm_t, int) {
  return RefuseOnHost("ncclCommSuspend", kNoSuspend);
}

ncclResult_t pncclCommResume(ncclComm_t) {
  return RefuseOnHost("ncclCommResume", kNoSuspend);
}

// hostccl sends plain text, so only a request for encryption is refused.
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t* config) {
  ncclEncryptionConfig_t read = DYNAMICCL_NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  read.magic = 0;
  if (config != nullptr) {
    std::memcpy(static_cast<void*>(&read), config, std::min(config->size, sizeof(read)));
  }
  if (read.magic != NCCL_API_MAGIC) {
    return Refuse(Error{ErrorKind::kInvalidArgument,
                        "ncclSetEncryption: null, or not initialised with NCCL_ENCRYPTION_CONFIG_INITIALIZER",
                        {}});
  }
  if (read.mode == NCCL_ENCRYPTION_MODE_NONE) return ncclSuccess;
  return RefuseOnHost("ncclSetEncryption", "hostccl's sockets carry no encryption");
}

// The host functions of nccl_device.h. hostccl's versions do not read their arguments, so none are declared,
// and no structure of that header has to be copied here.
#define HOSTCCL_DEVICE_FUNCTIONS(F) \
  F(DevCommCreate)                  \
  F(DevCommDestroy)                 \
  F(GetLsaMultimemDevicePointer)    \
  F(GetMultimemDevicePointer)       \
  F(GetLsaDevicePointer)            \
  F(GetPeerDevicePointer)           \
  F(GetMultimemDeviceLeInfo)        \
  F(GetCftDeviceLeInfo)             \
  F(GetPeerDeviceLeInfo)            \
  F(LsaBarrierCreateRequirement)    \
  F(GinBarrierCreateRequirement)    \
  F(LLA2ACreateRequirement)         \
  F(GinOutboxCreateRequirement)     \
  F(GinInboxA2ACreateRequirement)

#define HOSTCCL_REFUSED(name)                                                                              \
  extern "C" __attribute__((visibility("default"))) ncclResult_t pnccl##name();                            \
  extern "C" __attribute__((weak, alias("pnccl" #name), visibility("default"))) ncclResult_t nccl##name(); \
  ncclResult_t pnccl##name() {                                                                             \
    return RefuseOnHost("nccl" #name, kNoDevice);                                                          \
  }
HOSTCCL_DEVICE_FUNCTIONS(HOSTCCL_REFUSED)
