// SPDX-License-Identifier: Apache-2.0
// An NCCL network plugin (ABI version 8, and 7 for NCCL 2.19) that presents the machine's adapters.
// Connections open at once and move no bytes, because without a GPU no kernel sends any.
#include <array>
#include <cstdint>
#include <string>

#include "src/nccl_abi/tuner_types.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"
#include "tests/real_nccl/plugins/idle_connections.h"

namespace {

using namespace idle_connections;

// The layout of ncclNetProperties_v7_t, which has no registration_is_global.
struct Properties7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_connections;
  int max_receives;
  int device_type;
  int device_version;
};

// The layout of ncclNet_v8_t and ncclNet_v7_t, which have their members in the same order.
template <typename PropertiesOfVersion, typename Size>
struct NetworkPlugin {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t);
  ncclResult_t (*devices)(int*);
  ncclResult_t (*properties)(int, PropertiesOfVersion*);
  ncclResult_t (*listen)(int, void*, void**);
  ncclResult_t (*connect)(int, void*, void**, void**);
  ncclResult_t (*accept)(void*, void**, void**);
  ncclResult_t (*register_memory)(void*, void*, Size, int, void**);
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

int AdapterCount() {
  const auto& machine = cuda_standin::ThisMachine();
  return static_cast<int>(machine.adapters_at.size());
}

ncclResult_t Init(ncclDebugLogger_t) {
  return ncclSuccess;
}

ncclResult_t Devices(int* count) {
  *count = AdapterCount();
  return ncclSuccess;
}

ncclResult_t GetProperties(int device, Properties8* out) {
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

ncclResult_t GetProperties7(int device, Properties7* out) {
  Properties8 newer;
  const ncclResult_t result = GetProperties(device, &newer);
  if (result != ncclSuccess) return result;
  *out = {newer.name,         newer.pci_path,    newer.guid,          newer.pointer_support,
          newer.speed,        newer.port,        newer.latency,       newer.max_connections,
          newer.max_receives, newer.device_type, newer.device_version};
  return ncclSuccess;
}

template <typename PropertiesOfVersion, typename Size>
constexpr NetworkPlugin<PropertiesOfVersion, Size> PluginWith(
    ncclResult_t (*properties)(int, PropertiesOfVersion*)) {
  return {.name = "Instant",
          .init = Init,
          .devices = Devices,
          .properties = properties,
          .listen = Listen,
          .connect = Connect,
          .accept = Accept,
          .register_memory = RegisterMemory<Size>,
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
          .receive_consumed = nullptr};
}

}  // namespace

#define PLUGIN extern "C" __attribute__((visibility("default")))
PLUGIN const NetworkPlugin<Properties8, size_t> ncclNetPlugin_v8 =
    PluginWith<Properties8, size_t>(GetProperties);
PLUGIN const NetworkPlugin<Properties7, int> ncclNetPlugin_v7 = PluginWith<Properties7, int>(GetProperties7);
