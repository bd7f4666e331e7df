// SPDX-License-Identifier: Apache-2.0
// An NCCL network plugin (ABI version 8) that presents the machine's adapters and connects at once. It moves
// no bytes: on a machine without a GPU nothing would send any.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "src/nccl_abi/tuner_types.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"

namespace {

// ncclNetProperties_v8_t (NCCL ext-net/example/nccl/net_v8.h).
struct Properties {
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

// ncclNet_v8_t: the same order.
struct NetworkPlugin {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t);
  ncclResult_t (*devices)(int*);
  ncclResult_t (*properties)(int, Properties*);
  ncclResult_t (*listen)(int, void*, void**);
  ncclResult_t (*connect)(int, void*, void**, void**);
  ncclResult_t (*accept)(void*, void**, void**);
  ncclResult_t (*register_memory)(void*, void*, size_t, int, void**);
  ncclResult_t (*register_dma_buffer)(void*, void*, size_t, int, uint64_t, int, void**);
  ncclResult_t (*deregister_memory)(void*, void*);
  ncclResult_t (*send)(void*, void*, int, int, void*, void**);
  ncclResult_t (*receive)(void*, int, void**, int*, int*, void**, void**);
  ncclResult_t (*flush)(void*, int, void**, int*, void**, void**);
  ncclResult_t (*test)(void*, int*, int*);
  ncclResult_t (*close_send)(void*);
  ncclResult_t (*close_receive)(void*);
  ncclResult_t (*close_listen)(void*);
  ncclResult_t (*device_memory)(void*, void*, void**);
  ncclResult_t (*receive_consumed)(void*, int, void*);
};

constexpr size_t kHandleBytes = 64;  // the part of NCCL's handle that every release has

int AdapterCount() {
  const auto& machine = cuda_standin::ThisMachine();
  return machine.network_mbps > 0 ? static_cast<int>(machine.gpu_buses.size()) : 0;
}

// All connections and registrations are this one object.
void* Token() {
  static int token = 0;
  return &token;
}

ncclResult_t Init(ncclDebugLogger_t) {
  return ncclSuccess;
}

ncclResult_t Devices(int* count) {
  *count = AdapterCount();
  return ncclSuccess;
}

ncclResult_t GetProperties(int device, Properties* out) {
  static std::array<std::string, 64> names;
  if (device < 0 || device >= AdapterCount() || device >= static_cast<int>(names.size()))
    return ncclInvalidArgument;
  static const bool named = [] {
    for (size_t index = 0; index < names.size(); ++index)
      names[index] = cuda_standin::AdapterName(int(index));
    return true;
  }();
  constexpr int kHostAndDevicePointers = 3, kMaxConnections = 65536;
  *out = {.name = named ? names[device].data() : nullptr,
          .pci_path = nullptr,
          .guid = static_cast<uint64_t>(device) + 1,
          .pointer_support = kHostAndDevicePointers,
          .registration_is_global = 1,
          .speed = cuda_standin::ThisMachine().network_mbps,
          .port = 1,
          .latency = 0,
          .max_connections = kMaxConnections,
          .max_receives = 1,
          .device_type = 0,
          .device_version = 0};
  return ncclSuccess;
}

ncclResult_t Listen(int, void* handle, void** connection) {
  std::memset(handle, 0, kHandleBytes);
  *connection = Token();
  return ncclSuccess;
}

ncclResult_t Connect(int, void*, void** connection, void**) {
  *connection = Token();
  return ncclSuccess;
}

ncclResult_t Accept(void*, void** connection, void**) {
  *connection = Token();
  return ncclSuccess;
}

ncclResult_t RegisterMemory(void*, void*, size_t, int, void** registration) {
  *registration = Token();
  return ncclSuccess;
}

ncclResult_t RegisterDmaBuffer(void*, void*, size_t, int, uint64_t, int, void** registration) {
  *registration = Token();
  return ncclSuccess;
}

ncclResult_t DeregisterMemory(void*, void*) {
  return ncclSuccess;
}

// Errors, not silence: whoever gets here believes that bytes move.
ncclResult_t Send(void*, void*, int, int, void*, void**) {
  return ncclInternalError;
}
ncclResult_t Receive(void*, int, void**, int*, int*, void**, void**) {
  return ncclInternalError;
}
ncclResult_t Flush(void*, int, void**, int*, void**, void**) {
  return ncclInternalError;
}
ncclResult_t Test(void*, int*, int*) {
  return ncclInternalError;
}

ncclResult_t Close(void*) {
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const NetworkPlugin ncclNetPlugin_v8 = {
    .name = "Instant",
    .init = Init,
    .devices = Devices,
    .properties = GetProperties,
    .listen = Listen,
    .connect = Connect,
    .accept = Accept,
    .register_memory = RegisterMemory,
    .register_dma_buffer = RegisterDmaBuffer,
    .deregister_memory = DeregisterMemory,
    .send = Send,
    .receive = Receive,
    .flush = Flush,
    .test = Test,
    .close_send = Close,
    .close_receive = Close,
    .close_listen = Close,
    .device_memory = nullptr,
    .receive_consumed = nullptr,
};
