// SPDX-License-Identifier: Apache-2.0
// The registry of this process's shared buffers, and the allocation of their pages. See shared_buffer.h.
#include "src/transport/shared_buffer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/shared_memory.h"
#include "src/transport/descriptor_server.h"
#include "src/transport/process_identity.h"

namespace dynamiccl {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;
// The value of MADV_POPULATE_WRITE, which older headers lack. Kernels before 5.14 answer EINVAL.
constexpr int kMadvPopulateWrite = 23;

size_t RoundUp(size_t bytes, size_t granule) {
  return (bytes + granule - 1) / granule * granule;
}

// Describes one buffer of this process.
struct Allocation {
  uint64_t number = 0;
  std::byte* address = nullptr;
  SharedBufferLayout layout;
  UniqueFd fd;             // closed in a child of fork(): the memory is the parent's to hand out
  bool inherited = false;  // made by the parent before fork()
};

SharedBufferTrailer& TrailerOf(const Allocation& allocation) {
  return *reinterpret_cast<SharedBufferTrailer*>(allocation.address + allocation.layout.data_bytes);
}

// All buffers of this process by address, behind one mutex. Any thread may use it.
class SharedBufferRegistry {
 public:
  // The registry is never destroyed, because static destructors of the program may free buffers.
  static SharedBufferRegistry& Get() {
    static auto* const registry = new SharedBufferRegistry;
    return *registry;
  }

  // Starts the descriptor server before the first buffer is handed out.
  Status StartServing() {
    const std::lock_guard lock(mutex_);
    if (serving_) return {};
    DYNAMICCL_CHECK_OK(StartDescriptorServer());
    serving_ = true;
    return {};
  }

  void Add(Allocation allocation) {
    const std::lock_guard lock(mutex_);
    allocation.number = next_number_++;
    by_address_.emplace(allocation.address, std::move(allocation));
  }

  Result<Allocation> Remove(void* address) {
    const std::lock_guard lock(mutex_);
    auto node = by_address_.extract(static_cast<std::byte*>(address));
    if (node.empty()) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is not the address of a shared buffer",
                                fmt::ptr(address)),
                      "free only what ncclMemAlloc returned, and once");
    }
    return std::move(node.mapped());
  }

  // Fills in `allocation` and the offset of `ref` if the range lies in one buffer of this process.
  void Locate(const std::byte* address, BufferRef& ref) const {
    const std::lock_guard lock(mutex_);
    auto next = by_address_.upper_bound(const_cast<std::byte*>(address));
    if (next == by_address_.begin()) return;
    const Allocation& found = std::prev(next)->second;
    const auto offset = static_cast<size_t>(address - found.address);
    if (found.inherited || offset > found.layout.data_bytes || ref.bytes > found.layout.data_bytes - offset)
      return;
    ref.allocation = found.number;
    ref.offset = offset;
  }

  Result<SharedBufferHandle> Open(uint64_t number) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, allocation] : by_address_) {
      if (allocation.number != number || allocation.inherited) continue;
      UniqueFd copy(::fcntl(allocation.fd.get(), F_DUPFD_CLOEXEC, 0));
      if (!copy.valid()) return MakeError(ErrorKind::kUnavailable, "cannot duplicate a descriptor");
      return SharedBufferHandle{std::move(copy), allocation.layout.data_bytes};
    }
    return MakeError(ErrorKind::kNotFound, "shared buffer {} was freed", number);
  }

 private:
  SharedBufferRegistry() {
    ::pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, [] { Get().AfterFork(); });
  }

  // Runs in a child of fork() with the lock held. The buffers stay usable in the child, but only the parent
  // hands them out.
  void AfterFork() {
    for (auto& [address, allocation] : by_address_) {
      allocation.inherited = true;
      allocation.fd.Reset();
    }
    serving_ = false;
    mutex_.unlock();
  }

  mutable std::mutex mutex_;
  std::map<std::byte*, Allocation> by_address_;
  uint64_t next_number_ = 1;
  bool serving_ = false;
};

// Touches every page now, so that running out of memory is an error here and not a SIGBUS later.
Status MakePresent(std::byte* address, size_t bytes) {
  // The kernel follows this advice where shared memory may have huge pages
  // (/sys/kernel/mm/transparent_hugepage/shmem_enabled). The first touch then costs a fraction.
  ::madvise(address, bytes, MADV_HUGEPAGE);
  while (::madvise(address, bytes, kMadvPopulateWrite) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno != EINVAL) {
      return MakeError(ErrorKind::kUnavailable, "no memory for a shared buffer of {} bytes: {}", bytes,
                       ErrnoText(errno));
    }
    // Adding 0 atomically makes the page present without changing what a peer may have written.
    for (size_t at = 0; at < bytes; at += kPageBytes) {
      std::atomic_ref(reinterpret_cast<uint8_t&>(address[at])).fetch_or(0, std::memory_order_relaxed);
    }
    return {};
  }
  return {};
}

// Maps the memfd so that file offsets and addresses agree modulo the size of a huge page. It reserves a
// larger range, maps the memfd inside the range, and gives the rest back.
Result<std::byte*> MapAligned(int fd, size_t bytes) {
  const size_t alignment = bytes < kHugePageBytes ? kPageBytes : kHugePageBytes;
  const size_t reserved = RoundUp(bytes, kPageBytes) + alignment;
  void* const range =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    return MakeError(ErrorKind::kUnavailable, "no address space for {} bytes: {}", bytes, ErrnoText(errno));
  }
  auto* const begin = static_cast<std::byte*>(range);
  const size_t lead =
      RoundUp(reinterpret_cast<uintptr_t>(begin), alignment) - reinterpret_cast<uintptr_t>(begin);
  std::byte* const target = begin + lead;
  void* const mapped = ::mmap(target, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int code = errno;
    ::munmap(begin, reserved);
    return MakeError(ErrorKind::kUnavailable, "cannot map a shared buffer of {} bytes: {}", bytes,
                     ErrnoText(code));
  }
  if (lead > 0) ::munmap(begin, lead);
  if (lead + bytes < reserved) ::munmap(target + bytes, reserved - lead - bytes);
  return target;
}

}  // namespace

SharedBufferLayout SharedBufferLayout::For(size_t bytes) {
  const size_t data = RoundUp(std::max<size_t>(bytes, 1), kPageBytes);
  return {data, data + kPageBytes};
}

Result<std::byte*> MapSharedBuffer(int fd, const SharedBufferLayout& layout) {
  DYNAMICCL_TRY(std::byte* const address, MapAligned(fd, layout.total_bytes));
  const Status present = MakePresent(address, layout.total_bytes);
  if (present) return address;
  ::munmap(address, layout.total_bytes);
  return tl::unexpected(present.error());
}

Result<void*> AllocateSharedBuffer(size_t bytes) {
  if (bytes > SIZE_MAX / 4) return MakeError(ErrorKind::kInvalidArgument, "a buffer of {} bytes", bytes);
  SharedBufferRegistry& registry = SharedBufferRegistry::Get();
  DYNAMICCL_CHECK_OK(registry.StartServing());
  Allocation allocation;
  allocation.layout = SharedBufferLayout::For(bytes);
  DYNAMICCL_TRY(allocation.fd, CreateSealedMemory("hostccl-buffer", allocation.layout.total_bytes));
  DYNAMICCL_TRY(allocation.address, MapSharedBuffer(allocation.fd.get(), allocation.layout));
  void* const address = allocation.address;
  registry.Add(std::move(allocation));
  return address;
}

Status FreeSharedBuffer(void* address) {
  DYNAMICCL_TRY(const Allocation allocation, SharedBufferRegistry::Get().Remove(address));
  if (!allocation.inherited) {
    TrailerOf(allocation).freed.store(1, std::memory_order_release);
    ::fallocate(allocation.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(allocation.layout.data_bytes));
  }
  ::munmap(allocation.address, allocation.layout.total_bytes);
  return {};
}

BufferRef DescribeBuffer(const void* address, size_t bytes) {
  BufferRef ref;
  ref.process = ProcessToken();
  ref.address = reinterpret_cast<uint64_t>(address);
  ref.bytes = bytes;
  ref.pid = ::getpid();
  SharedBufferRegistry::Get().Locate(static_cast<const std::byte*>(address), ref);
  return ref;
}

Result<SharedBufferHandle> OpenSharedBuffer(uint64_t allocation) {
  return SharedBufferRegistry::Get().Open(allocation);
}

}  // namespace dynamiccl
