// SPDX-License-Identifier: Apache-2.0
// Shared by the network plugins of this folder: the properties of version 8, and connections that open at
// once. The connections move no bytes, because without a GPU no kernel sends any.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/nccl_abi/tuner_types.h"

namespace idle_connections {

// The layout of ncclNetProperties_v8_t (NCCL ext-net/example/nccl/net_v8.h).
struct Properties8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed;
  int port;
  float latency;
  int max_connections;
  int max_receives;
  int device_type;
  int device_version;
};

inline constexpr size_t kHandleBytes = 64;  // bytes of NCCL's handle that every release has

// Returns the one object that stands for all connections and registrations.
inline void* Token() {
  static int token = 0;
  return &token;
}

inline ncclResult_t Listen(int, void* handle, void** connection) {
  std::memset(handle, 0, kHandleBytes);
  *connection = Token();
  return ncclSuccess;
}

inline ncclResult_t Connect(int, void*, void** connection, void**) {
  *connection = Token();
  return ncclSuccess;
}

inline ncclResult_t Accept(void*, void** connection, void**) {
  *connection = Token();
  return ncclSuccess;
}

template <typename Size>
ncclResult_t RegisterMemory(void*, void*, Size, int, void** registration) {
  *registration = Token();
  return ncclSuccess;
}

inline ncclResult_t RegisterDmaBuffer(void*, void*, size_t, int, uint64_t, int, void** registration) {
  *registration = Token();
  return ncclSuccess;
}

inline ncclResult_t DeregisterMemory(void*, void*) {
  return ncclSuccess;
}

// These functions return an error, because their caller expects that bytes move.
inline ncclResult_t Send(void*, void*, int, int, void*, void**) {
  return ncclInternalError;
}
inline ncclResult_t Receive(void*, int, void**, int*, int*, void**, void**) {
  return ncclInternalError;
}
inline ncclResult_t Flush(void*, int, void**, int*, void**, void**) {
  return ncclInternalError;
}
inline ncclResult_t Test(void*, int*, int*) {
  return ncclInternalError;
}

inline ncclResult_t Close(void*) {
  return ncclSuccess;
}

}  // namespace idle_connections
