// SPDX-License-Identifier: Apache-2.0
// Buffers that other processes can map: each is a memfd of its own, handed over on request by a thread of the
// owner (descriptor_server.h). What ncclMemAlloc gives out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Memory of at least `bytes`, zero-filled, aligned to a page, every page present: nothing faults later. Any
// thread. kUnavailable when the system has not enough memory.
Result<void*> AllocateSharedBuffer(size_t bytes);

// Gives the memory back to the system at once, also where peers still map it. kInvalidArgument for an address
// that AllocateSharedBuffer did not return.
Status FreeSharedBuffer(void* address);

// What a rank of the same host needs to reach [address, address + bytes) of the describing process. Plain
// data: travels through shared memory.
struct BufferRef {
  uint64_t process = 0;     // ProcessToken() of the owner
  uint64_t allocation = 0;  // number within the owner, never used twice; 0: private memory
  uint64_t offset = 0;      // of the first byte within the allocation
  uint64_t address = 0;     // of the first byte in the owner
  uint64_t bytes = 0;
  int64_t pid = 0;

  bool is_shared() const { return allocation != 0; }
};
static_assert(std::is_trivially_copyable_v<BufferRef>);

// Any thread. Memory that is not wholly within one allocation is private.
BufferRef DescribeBuffer(const void* address, size_t bytes);

// At the end of each memfd, on a page of its own: how peers learn that a mapping is of no more use.
struct alignas(64) SharedBufferTrailer {
  std::atomic<uint32_t> freed;
};

// How an allocation of `bytes` is laid out in its memfd.
struct SharedBufferLayout {
  size_t data_bytes = 0;   // whole pages
  size_t total_bytes = 0;  // with the trailer

  static SharedBufferLayout For(size_t bytes);
};

// Maps all of a memfd at an address that allows huge pages, with every page present. The caller unmaps
// layout.total_bytes.
Result<std::byte*> MapSharedBuffer(int fd, const SharedBufferLayout& layout);

// For the descriptor server: a duplicate of the allocation's descriptor, and its size.
struct SharedBufferHandle {
  UniqueFd fd;
  size_t bytes = 0;
};
Result<SharedBufferHandle> OpenSharedBuffer(uint64_t allocation);

}  // namespace dynamiccl
