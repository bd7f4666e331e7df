// SPDX-License-Identifier: Apache-2.0
// Mappings of peers' buffers, which all ranks of the process share, and copies between processes. See
// peer_buffers.h.
#include "src/transport/peer_buffers.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <cerrno>
#include <mutex>

#include "src/base/shared_memory.h"
#include "src/transport/descriptor_server.h"
#include "src/transport/process_identity.h"

namespace dynamiccl {
namespace {

// All mappings of this process; its ranks and communicators share them. The object is never destroyed,
// because threads may outlive static destructors.
struct SharedMappings {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<PeerMapping>> by_key;
};

SharedMappings& Mappings() {
  static auto* const mappings = new SharedMappings;
  return *mappings;
}

// Asks the owner of the buffer for its descriptor and maps it. The size that the peer states is checked
// first: a wrong size could lead to reads beyond the buffer or to SIGBUS.
Result<std::shared_ptr<PeerMapping>> MapGranted(const BufferRef& ref, Deadline deadline) {
  DYNAMICCL_TRY(const SharedBufferGrant grant, RequestDescriptor(ref.process, ref.allocation, deadline));
  if (ref.offset > grant.bytes || ref.bytes > grant.bytes - ref.offset) {
    return MakeError(ErrorKind::kCorrupt, "a peer described {} bytes at {} of a buffer of {}", ref.bytes,
                     ref.offset, grant.bytes);
  }
  const SharedBufferLayout layout = SharedBufferLayout::For(grant.bytes);
  if (layout.data_bytes != grant.bytes || !StaysAsLong(grant.fd.get(), layout.total_bytes)) {
    return MakeError(ErrorKind::kCorrupt, "a peer handed over something else than a buffer of {} bytes",
                     grant.bytes);
  }
  DYNAMICCL_TRY(std::byte* const data, MapSharedBuffer(grant.fd.get(), layout));
  return std::make_shared<PeerMapping>(data, layout.data_bytes);
}

// Returns the process's mapping of the buffer, and maps the buffer if there is no mapping yet. The lock is
// held while the owner is asked, so that two ranks do not map the same buffer twice.
Result<std::shared_ptr<PeerMapping>> FindOrMap(const BufferRef& ref, Deadline deadline) {
  SharedMappings& shared = Mappings();
  const std::pair key(ref.process, ref.allocation);
  const std::lock_guard lock(shared.mutex);
  if (auto known = shared.by_key[key].lock(); known != nullptr) return known;
  std::erase_if(shared.by_key, [&](const auto& entry) { return entry.second.expired(); });
  DYNAMICCL_TRY(auto mapping, MapGranted(ref, deadline));
  shared.by_key[key] = mapping;
  return mapping;
}

enum class Direction { kRead, kWrite };

// The system calls may copy fewer bytes than requested, so they are repeated.
Status CopyAcross(Direction direction, const BufferRef& ref, size_t offset, void* local, size_t bytes) {
  auto* at = static_cast<std::byte*>(local);
  uint64_t remote = ref.address + offset;
  while (bytes > 0) {
    const iovec here{at, bytes};
    const iovec there{reinterpret_cast<void*>(remote), bytes};
    const auto pid = static_cast<pid_t>(ref.pid);
    const ssize_t moved = direction == Direction::kRead ? ::process_vm_readv(pid, &here, 1, &there, 1, 0)
                                                        : ::process_vm_writev(pid, &here, 1, &there, 1, 0);
    if (moved <= 0) {
      return MakeError(errno == ESRCH ? ErrorKind::kPeerFailed : ErrorKind::kInvalidArgument,
                       "cannot {} {} bytes of process {} at {:#x}: {}",
                       direction == Direction::kRead ? "read" : "write", bytes, pid, remote,
                       ErrnoText(errno));
    }
    at += moved;
    remote += static_cast<uint64_t>(moved);
    bytes -= static_cast<size_t>(moved);
  }
  return {};
}

}  // namespace

PeerMapping::~PeerMapping() {
  ::munmap(data_, SharedBufferLayout::For(bytes_).total_bytes);
}

bool PeerMapping::freed() const {
  const auto* const trailer = reinterpret_cast<const SharedBufferTrailer*>(data_ + bytes_);
  return trailer->freed.load(std::memory_order_acquire) != 0;
}

Result<std::byte*> PeerBuffers::Map(const BufferRef& ref, Deadline deadline) {
  if (ref.process == ProcessToken()) return reinterpret_cast<std::byte*>(ref.address);
  const Key key(ref.process, ref.allocation);
  auto found = mappings_.find(key);
  if (found == mappings_.end()) {
    DYNAMICCL_TRY(auto mapping, FindOrMap(ref, deadline));
    found = mappings_.emplace(key, std::move(mapping)).first;
  }
  const PeerMapping& mapping = *found->second;
  if (mapping.freed() || ref.offset > mapping.bytes() || ref.bytes > mapping.bytes() - ref.offset) {
    return MakeError(ErrorKind::kPeerFailed, "a peer freed a buffer that a collective still uses");
  }
  return mapping.data() + ref.offset;
}

void PeerBuffers::DropFreed() {
  std::erase_if(mappings_, [](const auto& entry) { return entry.second->freed(); });
}

bool CanReadProcess(int64_t pid, uint64_t address, uint64_t expected) {
  uint64_t value = 0;
  const iovec here{&value, sizeof(value)};
  const iovec there{reinterpret_cast<void*>(address), sizeof(value)};
  return ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) == sizeof(value) &&
         value == expected;
}

// Nothing is mapped at address 0, so a process that has memory gives EFAULT. One that has ended gives ESRCH,
// also while its parent has not asked for its status.
bool IsReadableProcess(int64_t pid) {
  std::byte value{};
  const iovec here{&value, 1};
  const iovec there{nullptr, 1};
  return ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

Status ReadPeerMemory(const BufferRef& ref, size_t offset, void* to, size_t bytes) {
  return CopyAcross(Direction::kRead, ref, offset, to, bytes);
}

Status WritePeerMemory(const BufferRef& ref, size_t offset, const void* from, size_t bytes) {
  return CopyAcross(Direction::kWrite, ref, offset, const_cast<void*>(from), bytes);
}

}  // namespace dynamiccl
