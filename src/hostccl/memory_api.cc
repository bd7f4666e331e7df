// SPDX-License-Identifier: Apache-2.0
// Registration of buffers and windows. A window is "shared" if its memory comes from ncclMemAlloc on all
// ranks. A tuner is told that a call is registered if the call's buffers lie in shared windows.
#include "src/hostccl/memory_api.h"

#include <algorithm>
#include <utility>

#include "src/base/byte_codec.h"
#include "src/hostccl/api_call.h"
#include "src/hostccl/group.h"
#include "src/transport/shared_buffer.h"

namespace dynamiccl::hostccl {
namespace {

// The window flags of nccl.h 2.32, with those that only GPU kernels can use.
constexpr int kWindowFlags =
    NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING | NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED;
constexpr int kDeviceOnlyFlags = NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED;

Error InvalidArgument(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message), {}};
}

// Checks the arguments as far as that needs no other rank.
Status CheckWindow(const void* buffer, size_t bytes, const ncclWindow_t* window, int flags) {
  if (buffer == nullptr || bytes == 0 || window == nullptr) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "ncclCommWindowRegister: the buffer or the place of the window is null, or 0 bytes");
  }
  if ((flags & ~kWindowFlags) != 0) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclCommWindowRegister: flags {:#x} are unknown", flags);
  }
  if ((flags & kDeviceOnlyFlags) != 0) {
    return MakeError(
        ErrorKind::kUnsupported,
        "ncclCommWindowRegister: NCCL_WIN_GIN_ONLY and NCCL_WIN_CFT_COUNTED are for GPU kernels");
  }
  return {};
}

// The facts about a rank's window that the rank sends to the others.
struct WindowFacts {
  int32_t flags = 0;
  uint8_t shared = 0;
};

// Collective: returns true if the window's memory comes from ncclMemAlloc on all ranks.
Result<bool> AgreeOnWindow(const Communicator& communicator, const WindowFacts& mine) {
  if (communicator.mesh() == nullptr) return mine.shared != 0;
  ByteWriter message;
  message.Put(mine.flags);
  message.Put(mine.shared);
  DYNAMICCL_TRY(const auto all,
                communicator.mesh()->AllGather(message.buffer(), Deadline::After(communicator.timeout_ms())));
  bool shared = true;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    const auto flags = reader.Get<int32_t>();
    if (flags != mine.flags) {
      return MakeError(ErrorKind::kInvalidArgument,
                       "ncclCommWindowRegister: flags differ between rank {} ({:#x}) and rank {} ({:#x})",
                       communicator.rank(), mine.flags, rank, flags);
    }
    shared &= reader.Get<uint8_t>() != 0;
  }
  return shared;
}

// Makes a handle from an entry's number. A number is never 0 and never used twice.
template <typename Handle>
Handle ToHandle(uint64_t id) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(id));
}
uint64_t ToId(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

}  // namespace

ncclResult_t RegisterBuffer(ncclComm_t comm, void* buffer, size_t bytes, void** handle) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (buffer == nullptr || bytes == 0 || handle == nullptr) {
    return Refuse(
        InvalidArgument("ncclCommRegister: the buffer or the place of the handle is null, or 0 bytes"));
  }
  *handle = ToHandle<void*>((*communicator)->windows().Add({buffer, bytes, false, false}));
  return ncclSuccess;
}

ncclResult_t DeregisterBuffer(ncclComm_t comm, void* handle) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if ((*communicator)->windows().Remove(ToId(handle), false)) return ncclSuccess;
  return Refuse(InvalidArgument("ncclCommDeregister: the handle is not one of this communicator"));
}

// Sets *window to null at once, and to the handle when all ranks have agreed.
ncclResult_t RegisterWindow(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window, int flags) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  const Status checked = CheckWindow(buffer, bytes, window, flags);
  if (!checked) return Refuse(checked.error());
  *window = nullptr;
  const auto run = [communicator = *communicator, buffer, bytes, window, flags] {
    const WindowFacts facts{flags, DescribeBuffer(buffer, bytes).is_shared()};
    const auto shared = AgreeOnWindow(*communicator, facts);
    if (!shared) return Refuse(shared.error());
    *window = ToHandle<ncclWindow_t>(communicator->windows().Add({buffer, bytes, true, *shared}));
    return ncclSuccess;
  };
  return ResultFor(comm, IssueSetup({comm, communicator->get(), run}));
}

// Removes the window on this rank only. A null window is accepted.
ncclResult_t DeregisterWindow(ncclComm_t comm, ncclWindow_t window) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (window == nullptr || (*communicator)->windows().Remove(ToId(window), true)) return ncclSuccess;
  return Refuse(InvalidArgument("ncclCommWindowDeregister: the window is not one of this communicator"));
}

ncclResult_t WindowAddress(ncclComm_t comm, ncclWindow_t window, void** address) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  const auto entry = (*communicator)->windows().Find(ToId(window));
  if (address == nullptr || !entry || !entry->is_window) {
    return Refuse(InvalidArgument("ncclWinGetUserPtr: the window is not one of this communicator"));
  }
  *address = entry->address;
  return ncclSuccess;
}

// The statistics "persistent" and "total" are the size of the memory in which the communicator receives. The
// others are 0, because hostccl cannot suspend memory.
ncclResult_t MemoryStatistic(ncclComm_t comm, ncclCommMemStat_t statistic, uint64_t* value) {
  const auto communicator = CheckCommunicator(comm);
  if (!communicator) return Refuse(communicator.error());
  if (value == nullptr || statistic < ncclStatGpuMemSuspend || statistic > ncclStatGpuMemTotal) {
    return Refuse(InvalidArgument("ncclCommMemStats: the statistic does not exist, or its place is null"));
  }
  const bool counts = statistic == ncclStatGpuMemPersist || statistic == ncclStatGpuMemTotal;
  *value = counts ? (*communicator)->receive_bytes() : 0;
  return ncclSuccess;
}

}  // namespace dynamiccl::hostccl
