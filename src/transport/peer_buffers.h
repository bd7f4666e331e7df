// SPDX-License-Identifier: Apache-2.0
// Gives a rank access to the buffers of other ranks on its host, in one of three ways: the pointer itself
// inside one process, a mapping of a shared buffer, or the system calls that copy between processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "src/base/status.h"
#include "src/transport/shared_buffer.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// Owns the mapping of a peer's shared buffer into this address space. Several communicators of the process
// share one mapping.
class PeerMapping {
 public:
  PeerMapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  PeerMapping(const PeerMapping&) = delete;
  PeerMapping& operator=(const PeerMapping&) = delete;
  ~PeerMapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Returns whether the owner gave the memory back. The mapping stays readable, but reads as zeros.
  bool freed() const;

 private:
  std::byte* data_;
  size_t bytes_;
};

// The mappings that one communicator uses. A mapping is dropped with the communicator, or earlier if its
// owner has freed the buffer. One thread at a time may use this object.
class PeerBuffers {
 public:
  // Returns the address in this process of the first byte of the range, which must lie in a shared buffer or
  // in memory of this process. Returns kPeerFailed when the owner is gone or has freed the buffer. The first
  // use of a buffer asks its owner, which may take a millisecond.
  Result<std::byte*> Map(const BufferRef& ref, Deadline deadline);
  // Unmaps the buffers that their owners have freed.
  void DropFreed();
  size_t mappings() const { return mappings_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // process, allocation
  std::map<Key, std::shared_ptr<PeerMapping>> mappings_;
};

// Returns whether the system lets this process read the memory of process `pid`. To find out, it reads the 8
// bytes at `address` of that process, which must be `expected`.
bool CanReadProcess(int64_t pid, uint64_t address, uint64_t expected);

// Returns whether process `pid` runs or is stopped, and the system lets this process read its memory.
bool IsReadableProcess(int64_t pid);

// These copy between this process and private memory of another one, at `offset` into the range `ref`. The
// caller checks that the bytes lie inside `ref`. They return kPeerFailed when the peer is gone.
Status ReadPeerMemory(const BufferRef& ref, size_t offset, void* to, size_t bytes);
Status WritePeerMemory(const BufferRef& ref, size_t offset, const void* from, size_t bytes);

}  // namespace dynamiccl
