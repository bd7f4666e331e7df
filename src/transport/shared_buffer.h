// SPDX-License-Identifier: Apache-2.0
// Buffers that other processes can map. Each buffer is a memfd of its own. A thread of the owning process
// hands the descriptor out on request (descriptor_server.h). hostccl's ncclMemAlloc returns such buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Allocates at least `bytes`, filled with zeros and aligned to a page. Every page is present, so no access
// faults later. Any thread may call this. Returns kUnavailable when the system has not enough memory.
Result<void*> AllocateSharedBuffer(size_t bytes);

// Gives the memory back to the system at once, even where peers still map it: they then read zeros. Any
// thread may call this. Returns kInvalidArgument for an address that AllocateSharedBuffer did not return.
Status FreeSharedBuffer(void* address);

// Tells a rank of the same host how to reach a range of memory [address, address + bytes) in the process that
// filled this in. It is plain data that travels through shared memory.
struct BufferRef {
  uint64_t process = 0;     // ProcessToken() of the owner
  uint64_t allocation = 0;  // number of the buffer within its owner, never reused; 0: private memory
  uint64_t offset = 0;      // offset of the first byte within the buffer
  uint64_t address = 0;     // address of the first byte in the owner's address space
  uint64_t bytes = 0;
  int64_t pid = 0;

  bool is_shared() const { return allocation != 0; }
};
static_assert(std::is_trivially_copyable_v<BufferRef>);

// Describes a range of memory of this process. A range that is not wholly inside one shared buffer is
// described as private memory. Any thread may call this.
BufferRef DescribeBuffer(const void* address, size_t bytes);

// The last page of each memfd begins with this trailer. It tells peers whether the owner has freed the
// buffer.
struct alignas(64) SharedBufferTrailer {
  std::atomic<uint32_t> freed;
};

// The layout of a memfd with a buffer of `bytes`: whole pages of data, then the page of the trailer.
struct SharedBufferLayout {
  size_t data_bytes = 0;
  size_t total_bytes = 0;

  static SharedBufferLayout For(size_t bytes);
};

// Maps a whole memfd at an address that allows huge pages, and makes every page present. The caller unmaps
// layout.total_bytes.
Result<std::byte*> MapSharedBuffer(int fd, const SharedBufferLayout& layout);

// A duplicate of a buffer's descriptor, and the size of its data.
struct SharedBufferHandle {
  UniqueFd fd;
  size_t bytes = 0;
};
// For the descriptor server: opens the buffer with this number. Returns kNotFound when the buffer was freed.
Result<SharedBufferHandle> OpenSharedBuffer(uint64_t allocation);

}  // namespace dynamiccl
