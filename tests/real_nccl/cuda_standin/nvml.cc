// SPDX-License-Identifier: Apache-2.0
// Exports the functions of NVML (libnvidia-ml.so.1) that NCCL calls. The NVLink functions return "not
// supported", because NVLinks come from the topology file. NCCL finds these functions with dlsym and does not
// check for null, so all of them must exist.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/place.h"

using cuda_standin::Machine;
using cuda_standin::ThisMachine;

namespace {

enum NvmlResult : int { kOk = 0, kBadArgument = 2, kNotSupportedHere = 3, kUnknownDevice = 6 };

using Device = void*;  // nvmlDevice_t: the device number plus one, so that it is never null

Device HandleOf(int device) {
  return reinterpret_cast<Device>(static_cast<uintptr_t>(device) + 1);
}
int DeviceOf(Device handle) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(handle)) - 1;
}
unsigned DeviceCount() {
  return static_cast<unsigned>(ThisMachine().gpu_buses.size());
}

// The layout of nvmlPciInfo_t (nvml.h).
struct PciInfo {
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};

// The layout of nvmlPciInfoExt_t (nvml.h).
struct PciInfoExt {
  unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char address[32];
};

// The layout of nvmlGpuFabricInfo_v2_t (nvml.h).
struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};

// Returns a PCI identity: the device or board number in the upper half, NVIDIA's vendor number in the lower
// half.
unsigned WithVendor(int identity) {
  return static_cast<unsigned>(identity) << 16 | 0x10de;
}

}  // namespace

#define NVML_FUNCTION extern "C" __attribute__((visibility("default")))

NVML_FUNCTION int nvmlInit() {
  return kOk;
}
NVML_FUNCTION int nvmlInit_v2() {
  return kOk;
}
NVML_FUNCTION int nvmlShutdown() {
  return kOk;
}
NVML_FUNCTION const char* nvmlErrorString(int error) {
  return error == kOk ? "ok" : "error of the NVML stand-in";
}

NVML_FUNCTION int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = DeviceCount();
  return kOk;
}
NVML_FUNCTION int nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

NVML_FUNCTION int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* handle) {
  if (index >= DeviceCount()) return kBadArgument;
  *handle = HandleOf(static_cast<int>(index));
  return kOk;
}
NVML_FUNCTION int nvmlDeviceGetHandleByIndex(unsigned index, Device* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

NVML_FUNCTION int nvmlDeviceGetHandleByPciBusId_v2(const char* address, Device* handle) {
  const int device = cuda_standin::DeviceAtPciAddress(ThisMachine(), address);
  if (device < 0) return kUnknownDevice;
  *handle = HandleOf(device);
  return kOk;
}
NVML_FUNCTION int nvmlDeviceGetHandleByPciBusId(const char* address, Device* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(address, handle);
}

NVML_FUNCTION int nvmlDeviceGetIndex(Device handle, unsigned* index) {
  *index = static_cast<unsigned>(DeviceOf(handle));
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetName(Device, char* name, unsigned bytes) {
  std::snprintf(name, bytes, "%s", ThisMachine().name.c_str());
  return kOk;
}

NVML_FUNCTION int nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  std::snprintf(version, bytes, "0.0 (stand-in)");
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetCudaComputeCapability(Device, int* major, int* minor) {
  *major = ThisMachine().architecture / 10;
  *minor = ThisMachine().architecture % 10;
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetP2PStatus(Device, Device, int, int* status) {
  constexpr int kPeersOk = 0, kPeersNotSupported = 5;  // nvmlGpuP2PStatus_t
  *status = ThisMachine().lacks.peer_access ? kPeersNotSupported : kPeersOk;
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetPciInfo_v3(Device handle, PciInfo* info) {
  *info = {};
  info->bus = static_cast<unsigned>(ThisMachine().gpu_buses.at(DeviceOf(handle)));
  info->device_id = WithVendor(ThisMachine().gpu_device);
  info->subsystem_id = WithVendor(ThisMachine().gpu_board);
  std::snprintf(info->address, sizeof info->address, "00000000:%02x:00.0", info->bus & 0xff);
  std::snprintf(info->legacy_address, sizeof info->legacy_address, "0000:%02x:00.0", info->bus & 0xff);
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetPciInfoExt(Device handle, PciInfoExt* info) {
  PciInfo plain;
  nvmlDeviceGetPciInfo_v3(handle, &plain);
  constexpr unsigned kDisplay = 3, k3dController = 2;
  *info = {info->version, 0, plain.bus, 0, plain.device_id, plain.subsystem_id, kDisplay, k3dController, {}};
  std::memcpy(info->address, plain.address, sizeof plain.address);
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetPcieLinkMaxSpeed(Device, int* speed) {
  *speed = 32000;  // MT/s
  return kOk;
}
NVML_FUNCTION int nvmlDeviceGetCurrPcieLinkGeneration(Device, unsigned* generation) {
  *generation = 5;
  return kOk;
}
NVML_FUNCTION int nvmlDeviceGetCurrPcieLinkWidth(Device, unsigned* width) {
  *width = 16;
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetMemoryErrorCounter(Device, int, int, int, unsigned long long* count) {
  *count = 0;
  return kOk;
}

// nvmlConfComputeSystemState_t has three switches. All of them are off.
NVML_FUNCTION int nvmlSystemGetConfComputeState(unsigned* state) {
  state[0] = state[1] = state[2] = 0;
  return kOk;
}

NVML_FUNCTION int nvmlDeviceGetNvLinkCapability(Device, unsigned, int, unsigned*) {
  return kNotSupportedHere;
}
NVML_FUNCTION int nvmlDeviceGetNvLinkState(Device, unsigned, int*) {
  return kNotSupportedHere;
}
NVML_FUNCTION int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, void*) {
  return kNotSupportedHere;
}
NVML_FUNCTION int nvmlDeviceGetNvLinkRemotePciInfo(Device, unsigned, void*) {
  return kNotSupportedHere;
}
NVML_FUNCTION int nvmlDeviceGetFieldValues(Device, int, void*) {
  return kNotSupportedHere;
}
// All nodes of one NVLink domain report the same cluster and the same clique.
NVML_FUNCTION int nvmlDeviceGetGpuFabricInfoV(Device, FabricInfo* info) {
  const int nodes = ThisMachine().nvlink_domain_nodes;
  if (nodes == 0) return kNotSupportedHere;
  constexpr unsigned char kCompleted = 3;
  *info = {info->version, {0x5e, 0xed}, kOk, 1, kCompleted, 0};
  info->cluster[15] = static_cast<unsigned char>(cuda_standin::ThisPlace().node / nodes + 1);
  return kOk;
}
