// SPDX-License-Identifier: Apache-2.0
// An NCCL network plugin (ABI versions 6, 8, 9 and 10) that presents the adapters of the topology file. They
// are the <net> elements of NCCL_TOPO_FILE that are no CollNet devices, in the order of their numbers. Each
// adapter has the name, speed, port, GUID and latency of its element. From version 9 on, NCCL may fuse
// several adapters into one, as its own InfiniBand network allows. Connections open at once and move no
// bytes.
//
// The structures and their order are those of NCCL's ext-net/example/nccl/net_v6.h to net_v10.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/real_nccl/cuda_standin/xml_tree.h"
#include "tests/real_nccl/plugins/idle_connections.h"

namespace {

using namespace idle_connections;
using cuda_standin::XmlElement;

constexpr int kMaxFused = 4;

struct FusedDevices {
  int count;
  int devices[kMaxFused];
};

struct Properties10 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_connections;
  int max_receives;
  int device_type;
  int device_version;
  FusedDevices fused;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};

struct Properties6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_connections;
  int max_receives;
};

struct Adapter {
  std::string name;
  uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 1;
  float latency_us = 0;
  bool reaches_gpu_memory = true;
  std::vector<int> parts;  // the adapter's own number, or the numbers of the adapters that NCCL fused into it
};

// The adapters of this process, read once. A mutex guards them, because NCCL calls from the threads of all
// ranks.
class Adapters {
 public:
  // The object is never destroyed, because NCCL's threads may outlive static objects.
  static Adapters& OfProcess() {
    static auto* adapters = new Adapters(std::getenv("NCCL_TOPO_FILE"));
    return *adapters;
  }

  int count() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(adapters_.size());
  }

  ncclResult_t Describe(int device, Properties10* out) {
    const std::lock_guard lock(mutex_);
    if (device < 0 || device >= static_cast<int>(adapters_.size())) return ncclInvalidArgument;
    Adapter& adapter = adapters_[static_cast<size_t>(device)];
    constexpr int kHostPointers = 1, kHostAndDevicePointers = 3, kMaxConnections = 65536, kMaxReceives = 8;
    constexpr size_t kMaxBytes = size_t{1} << 40;
    *out = {.name = adapter.name.data(),
            .pci_path = nullptr,
            .guid = adapter.guid,
            .pointer_support = adapter.reaches_gpu_memory ? kHostAndDevicePointers : kHostPointers,
            .registration_is_global = 1,
            .force_flush = 0,
            .speed = adapter.speed_mbps,
            .port = adapter.port,
            .latency = adapter.latency_us,
            .max_connections = kMaxConnections,
            .max_receives = kMaxReceives,
            .device_type = 0,
            .device_version = 0,
            .fused = {static_cast<int>(adapter.parts.size()), {}},
            .max_p2p_bytes = kMaxBytes,
            .max_collective_bytes = kMaxBytes};
    std::copy(adapter.parts.begin(), adapter.parts.end(), out->fused.devices);
    return ncclSuccess;
  }

  ncclResult_t Fuse(const FusedDevices& wanted, int* device) {
    const std::lock_guard lock(mutex_);
    if (wanted.count < 1 || wanted.count > kMaxFused) return ncclInvalidArgument;
    Adapter fused = adapters_.at(static_cast<size_t>(wanted.devices[0]));
    fused.parts.assign(wanted.devices, wanted.devices + wanted.count);
    for (int part = 1; part < wanted.count; ++part) {
      const Adapter& other = adapters_.at(static_cast<size_t>(wanted.devices[part]));
      fused.speed_mbps += other.speed_mbps;
      fused.name += "+" + other.name;
    }
    *device = static_cast<int>(adapters_.size());
    Report(*device, fused);
    adapters_.push_back(std::move(fused));
    return ncclSuccess;
  }

 private:
  // Prints a line such as "described_net: 0 fused 4 of 0 1". It has the node (the name of its topology file),
  // the number of the new adapter and the numbers of the fused adapters.
  static void Report(int device, const Adapter& fused) {
    std::string line =
        "described_net: " + std::filesystem::path(std::getenv("NCCL_TOPO_FILE")).stem().string() + " fused " +
        std::to_string(device) + " of";
    for (const int part : fused.parts) line += " " + std::to_string(part);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  explicit Adapters(const char* path) {
    std::ifstream file(path == nullptr ? "" : path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string error;
    const auto root = cuda_standin::ParseXml(text, &error);
    adapters_.reserve(kMost);  // NCCL keeps pointers to the names, so the vector must not move them
    if (root) AddThoseOf(*root);
  }

  void AddThoseOf(const XmlElement& root) {
    std::multimap<int, Adapter> in_order;
    root.Visit([&](const XmlElement& element) {
      if (element.tag != "net" || element.Get("coll", "0") == "1") return;
      in_order.emplace(std::atoi(element.Get("dev", "0").c_str()),
                       Adapter{.name = element.Get("name"),
                               .guid = std::strtoull(element.Get("guid", "0").c_str(), nullptr, 0),
                               .speed_mbps = std::atoi(element.Get("speed", "10000").c_str()),
                               .port = std::atoi(element.Get("port", "1").c_str()),
                               .latency_us = std::strtof(element.Get("latency", "0").c_str(), nullptr),
                               .reaches_gpu_memory = element.Get("gdr", "1") != "0",
                               .parts = {}});
    });
    for (auto& [number, adapter] : in_order) {
      adapter.parts = {static_cast<int>(adapters_.size())};
      adapters_.push_back(std::move(adapter));
    }
  }

  static constexpr size_t kMost = 1024;
  std::mutex mutex_;
  std::vector<Adapter> adapters_;
};

ncclResult_t Init(ncclDebugLogger_t) {
  return ncclSuccess;
}
ncclResult_t Init10(ncclDebugLogger_t, void*) {
  return ncclSuccess;
}

ncclResult_t Devices(int* count) {
  *count = Adapters::OfProcess().count();
  return ncclSuccess;
}

ncclResult_t GetProperties10(int device, Properties10* out) {
  return Adapters::OfProcess().Describe(device, out);
}

ncclResult_t GetProperties8(int device, Properties8* out) {
  Properties10 newer = {};
  const ncclResult_t result = GetProperties10(device, &newer);
  if (result != ncclSuccess) return result;
  *out = {newer.name,        newer.pci_path,      newer.guid,    newer.pointer_support, 1,
          newer.speed,       newer.port,          newer.latency, newer.max_connections, newer.max_receives,
          newer.device_type, newer.device_version};
  return ncclSuccess;
}

ncclResult_t GetProperties6(int device, Properties6* out) {
  Properties10 newer = {};
  const ncclResult_t result = GetProperties10(device, &newer);
  if (result != ncclSuccess) return result;
  *out = {newer.name,        newer.pci_path, newer.guid,    newer.pointer_support,
          newer.speed,       newer.port,     newer.latency, newer.max_connections,
          newer.max_receives};
  return ncclSuccess;
}

ncclResult_t MakeVirtualDevice(int* device, FusedDevices* wanted) {
  return Adapters::OfProcess().Fuse(*wanted, device);
}

ncclResult_t Connect6(int, void*, void** connection) {
  *connection = Token();
  return ncclSuccess;
}
ncclResult_t Connect10(int, void*, void*, void** connection, void**) {
  *connection = Token();
  return ncclSuccess;
}
ncclResult_t Accept6(void*, void** connection) {
  *connection = Token();
  return ncclSuccess;
}

// Stands for every function that moves bytes. The versions pass different arguments, and the function ignores
// all of them and returns an error.
using Transfer = ncclResult_t (*)();
ncclResult_t NothingMoves() {
  return ncclInternalError;
}

// The members that all versions have in this order. The versions differ in the types of the template's
// parameters.
template <typename InitFunction, typename PropertiesOfVersion, typename ConnectFunction,
          typename AcceptFunction, typename Size>
struct NetworkPlugin {
  const char* name = "Described";
  InitFunction* init;
  ncclResult_t (*devices)(int*) = Devices;
  ncclResult_t (*properties)(int, PropertiesOfVersion*);
  ncclResult_t (*listen)(int, void*, void**) = Listen;
  ConnectFunction* connect;
  AcceptFunction* accept;
  ncclResult_t (*register_memory)(void*, void*, Size, int, void**) = RegisterMemory<Size>;
  ncclResult_t (*register_dma_buffer)(void*, void*, size_t, int, uint64_t, int, void**) = RegisterDmaBuffer;
  ncclResult_t (*deregister_memory)(void*, void*) = DeregisterMemory;
  Transfer send = NothingMoves;
  Transfer receive = NothingMoves;
  Transfer flush = NothingMoves;
  Transfer test = NothingMoves;
  ncclResult_t (*close_send)(void*) = Close;
  ncclResult_t (*close_receive)(void*) = Close;
  ncclResult_t (*close_listen)(void*) = Close;
  // Versions 7 and later have these members.
  ncclResult_t (*device_memory)(void*, void*, void**) = nullptr;
  ncclResult_t (*receive_consumed)(void*, int, void*) = nullptr;
  // Versions 9 and later have this member.
  ncclResult_t (*make_virtual_device)(int*, FusedDevices*) = nullptr;
};

using Connect8 = ncclResult_t(int, void*, void**, void**);

}  // namespace

#define PLUGIN extern "C" __attribute__((visibility("default")))
PLUGIN const NetworkPlugin<decltype(Init10), Properties10, decltype(Connect10), decltype(Accept), size_t>
    ncclNetPlugin_v10 = {.init = Init10,
                         .properties = GetProperties10,
                         .connect = Connect10,
                         .accept = Accept,
                         .make_virtual_device = MakeVirtualDevice};
PLUGIN const NetworkPlugin<decltype(Init), Properties10, Connect8, decltype(Accept), size_t>
    ncclNetPlugin_v9 = {.init = Init,
                        .properties = GetProperties10,
                        .connect = Connect,
                        .accept = Accept,
                        .make_virtual_device = MakeVirtualDevice};
PLUGIN const NetworkPlugin<decltype(Init), Properties8, Connect8, decltype(Accept), size_t> ncclNetPlugin_v8 =
    {.init = Init, .properties = GetProperties8, .connect = Connect, .accept = Accept};
PLUGIN const NetworkPlugin<decltype(Init), Properties6, decltype(Connect6), decltype(Accept6), int>
    ncclNetPlugin_v6 = {.init = Init, .properties = GetProperties6, .connect = Connect6, .accept = Accept6};
