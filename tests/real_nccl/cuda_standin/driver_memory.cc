// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA driver's virtual memory (cuMem*) and multicast objects. Physical memory is a piece of
// an unlinked file. NCCL can therefore map it several times and pass it to other processes as a file
// descriptor. Only mappings that the host uses are made at once. Those of a GPU's memory are made when a copy
// or a fill touches them: a large communicator has more than a process may have (vm.max_map_count).
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/device_use.h"
#include "tests/real_nccl/cuda_standin/free_ranges.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/memory.h"
#include "tests/real_nccl/cuda_standin/memory_arena.h"
#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

constexpr size_t kGranularity = 2 << 20;  // bytes; equal on all GPUs that NCCL supports
constexpr int kLocationDevice = 1;        // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kHandlePosixFile = 1;       // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kHandleFabric = 8;          // CU_MEM_HANDLE_TYPE_FABRIC

// The layout of CUmemFabricHandle (cuda.h): 64 bytes, whose content only the driver defines.
struct FabricHandle {
  PieceName name;
  unsigned char rest[64 - sizeof(PieceName)];
};

// The layout of CUmemAllocationProp (cuda.h).
struct AllocationProperties {
  int type;
  int handle_types;
  int location_type;
  int location_id;
  void* metadata;
  unsigned char compression;
  unsigned char gpu_direct_capable;
  unsigned short usage;
  unsigned char reserved[4];
};
static_assert(sizeof(AllocationProperties) == 32, "CUmemAllocationProp");

// One allocation of physical memory. It lives until its handle is released and all of its mappings are gone.
struct Physical {
  Piece piece;
  AllocationProperties properties;
  std::atomic<int> references{1};
  // Bytes that this allocation takes of a GPU's memory. The number is 0 for host memory, multicast objects
  // and imported memory.
  int64_t device_bytes = 0;
  Place gpu = {};
};

Physical* FromHandle(DriverHandle handle) {
  return reinterpret_cast<Physical*>(handle);
}
DriverHandle ToHandle(Physical* physical) {
  return reinterpret_cast<DriverHandle>(physical);
}

void Unreference(Physical* physical) {
  if (physical->references.fetch_sub(1) != 1) return;
  if (physical->device_bytes > 0) CountDeviceMemory(physical->gpu, -physical->device_bytes);
  ReturnPiece(physical->piece);
  delete physical;
}

struct MappingTable {
  std::mutex mutex;
  std::map<uintptr_t, Physical*> physical;
};

MappingTable& Mappings() {
  static auto* table = new MappingTable;
  return *table;
}

int Succeed() {
  return kSuccess;
}

// The addresses that NCCL reserves. Neighbours are one mapping as long as nothing is mapped there.
struct AddressSpace {
  std::mutex mutex;
  FreeRanges free;
};

AddressSpace& Addresses() {
  static auto* space = new AddressSpace;
  return *space;
}

int AddressReserve(DriverHandle* out, size_t bytes, size_t alignment, DriverHandle, DriverHandle) {
  constexpr size_t kGrowth = size_t{64} << 30;
  alignment = std::max(alignment, kGranularity);
  AddressSpace& space = Addresses();
  const std::lock_guard<std::mutex> lock(space.mutex);
  auto begin = space.free.Take(bytes, alignment);
  if (!begin) {
    const size_t more = std::max(kGrowth, bytes + alignment);
    void* added = MapPages(0, more, PROT_NONE);
    if (added == nullptr) return kOutOfMemory;
    space.free.Return(reinterpret_cast<uintptr_t>(added), more);
    begin = space.free.Take(bytes, alignment);
  }
  *out = *begin;
  return kSuccess;
}

int AddressFree(DriverHandle address, size_t bytes) {
  AddressSpace& space = Addresses();
  const std::lock_guard<std::mutex> lock(space.mutex);
  space.free.Return(address, bytes);
  return kSuccess;
}

int CreatePhysical(DriverHandle* out, size_t bytes, const AllocationProperties& properties) {
  const auto piece = TakePiece(bytes, properties.location_type != kLocationDevice);
  if (!piece) return kOutOfMemory;
  *out = ToHandle(new Physical{*piece, properties});
  return kSuccess;
}

int MemCreate(DriverHandle* out, size_t bytes, const AllocationProperties* properties, DriverHandle) {
  if ((properties->handle_types & kHandleFabric) != 0 && ThisMachine().lacks.fabric_handles)
    return kNotPermitted;
  const int error = CreatePhysical(out, bytes, *properties);
  if (error != kSuccess || properties->location_type != kLocationDevice) return error;
  Physical* physical = FromHandle(*out);
  physical->device_bytes = static_cast<int64_t>(bytes);
  physical->gpu = ThisPlace();
  CountDeviceMemory(physical->gpu, physical->device_bytes);
  return kSuccess;
}

bool HasFabric() {
  return AttributeValue(kFabricHandles, ThisPlace().device) != 0;
}

AllocationProperties OnThisDevice() {
  return {.type = 1,
          .handle_types = HasFabric() ? kHandleFabric : kHandlePosixFile,
          .location_type = kLocationDevice,
          .location_id = ThisPlace().device,
          .gpu_direct_capable = 1};
}

int GetGranularity(size_t* granularity, const void*, int) {
  *granularity = kGranularity;
  return kSuccess;
}

int ExportToShareableHandle(void* out, DriverHandle handle, int type, DriverHandle) {
  const Piece& piece = FromHandle(handle)->piece;
  if (type == kHandleFabric && HasFabric()) {
    const FabricHandle fabric = {NameOf(piece), {}};
    std::memcpy(out, &fabric, sizeof fabric);
    return kSuccess;
  }
  if (type != kHandlePosixFile) return kNotSupported;
  const int file = DescribePiece(piece);
  std::memcpy(out, &file, sizeof file);
  return file < 0 ? kOutOfMemory : kSuccess;
}

std::optional<Piece> FindShared(void* shareable, int type) {
  if (type != kHandleFabric) return FindPiece(static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
  FabricHandle fabric;
  std::memcpy(&fabric, shareable, sizeof fabric);
  return FindPiece(fabric.name);
}

int ImportFromShareableHandle(DriverHandle* out, void* shareable, int type) {
  if (type != kHandlePosixFile && !(type == kHandleFabric && HasFabric())) return kNotSupported;
  const auto piece = FindShared(shareable, type);
  if (!piece) return kInvalidValue;
  *out = ToHandle(new Physical{*piece, OnThisDevice()});
  return kSuccess;
}

int MemMap(DriverHandle address, size_t bytes, size_t offset, DriverHandle handle, DriverHandle) {
  Physical* physical = FromHandle(handle);
  const Piece& piece = physical->piece;
  if (piece.host_uses &&
      MapPages(address, bytes, PROT_READ | PROT_WRITE, piece.file, piece.offset + offset) == nullptr)
    return kOutOfMemory;
  physical->references.fetch_add(1);
  const bool on_device = physical->properties.location_type == kLocationDevice;
  RememberBlock({.address = static_cast<uintptr_t>(address),
                 .bytes = bytes,
                 .kind = on_device ? MemoryKind::kDevice : MemoryKind::kHost,
                 .device = ThisPlace().device,
                 .node = ThisPlace().node,
                 .file = piece.file,
                 .file_offset = piece.offset + offset,
                 .mapped = piece.host_uses});
  const std::lock_guard<std::mutex> lock(Mappings().mutex);
  Mappings().physical[address] = physical;
  return kSuccess;
}

int MemUnmap(DriverHandle address, size_t bytes) {
  const auto block = ForgetBlock(address);
  if (!block || block->mapped) MapPages(address, bytes, PROT_NONE);
  Physical* physical = nullptr;
  {
    const std::lock_guard<std::mutex> lock(Mappings().mutex);
    const auto row = Mappings().physical.find(address);
    if (row == Mappings().physical.end()) return kSuccess;
    physical = row->second;
    Mappings().physical.erase(row);
  }
  Unreference(physical);
  return kSuccess;
}

int MemRelease(DriverHandle handle) {
  Unreference(FromHandle(handle));
  return kSuccess;
}

int MemRetainAllocationHandle(DriverHandle* out, void* address) {
  const auto block = FindBlock(address);
  if (!block) return kInvalidValue;
  const std::lock_guard<std::mutex> lock(Mappings().mutex);
  const auto row = Mappings().physical.find(block->address);
  if (row == Mappings().physical.end()) return kInvalidValue;
  row->second->references.fetch_add(1);
  *out = ToHandle(row->second);
  return kSuccess;
}

int GetPropertiesFromHandle(AllocationProperties* out, DriverHandle handle) {
  *out = FromHandle(handle)->properties;
  return kSuccess;
}

// The first members of CUmulticastObjectProp (cuda.h).
struct MulticastProperties {
  unsigned devices;
  size_t bytes;
};

int MulticastCreate(DriverHandle* out, const MulticastProperties* properties) {
  return CreatePhysical(out, properties->bytes, OnThisDevice());
}

// Binds memory or an address to a multicast object. Fails on a machine that lacks multicast binding.
int MulticastBind() {
  return ThisMachine().lacks.multicast_binding ? kIllegalState : kSuccess;
}

}  // namespace

std::span<const NamedFunction> DriverMemoryFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cuMemAddressReserve, AddressReserve),
      CUDA_STANDIN_FUNCTION(cuMemAddressFree, AddressFree),
      CUDA_STANDIN_FUNCTION(cuMemCreate, MemCreate),
      CUDA_STANDIN_FUNCTION(cuMemRelease, MemRelease),
      CUDA_STANDIN_FUNCTION(cuMemMap, MemMap),
      CUDA_STANDIN_FUNCTION(cuMemUnmap, MemUnmap),
      CUDA_STANDIN_FUNCTION(cuMemSetAccess, Succeed),
      CUDA_STANDIN_FUNCTION(cuMemGetAllocationGranularity, GetGranularity),
      CUDA_STANDIN_FUNCTION(cuMemExportToShareableHandle, ExportToShareableHandle),
      CUDA_STANDIN_FUNCTION(cuMemImportFromShareableHandle, ImportFromShareableHandle),
      CUDA_STANDIN_FUNCTION(cuMemRetainAllocationHandle, MemRetainAllocationHandle),
      CUDA_STANDIN_FUNCTION(cuMemGetAllocationPropertiesFromHandle, GetPropertiesFromHandle),
      CUDA_STANDIN_FUNCTION(cuMulticastCreate, MulticastCreate),
      CUDA_STANDIN_FUNCTION(cuMulticastAddDevice, Succeed),
      CUDA_STANDIN_FUNCTION(cuMulticastBindMem, MulticastBind),
      CUDA_STANDIN_FUNCTION(cuMulticastBindAddr, MulticastBind),
      CUDA_STANDIN_FUNCTION(cuMulticastUnbind, Succeed),
      CUDA_STANDIN_FUNCTION(cuMulticastGetGranularity, GetGranularity),
  };
  return kTable;
}

}  // namespace cuda_standin
