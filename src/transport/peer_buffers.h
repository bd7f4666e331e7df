// SPDX-License-Identifier: Apache-2.0
// How a rank reaches buffers of the other ranks of its host: the pointer itself inside a process, a mapping
// of a shared buffer, or the system calls that copy between processes.
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

// A peer's shared buffer in this address space.
class PeerMapping {
 public:
  PeerMapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  PeerMapping(const PeerMapping&) = delete;
  PeerMapping& operator=(const PeerMapping&) = delete;
  ~PeerMapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // The owner gave the memory back.
  bool freed() const;

 private:
  std::byte* data_;
  size_t bytes_;
};

// Mappings that one communicator holds; they go with it, and those that their owner freed go earlier.
// Communicators of a process share a mapping. One thread at a time.
class PeerBuffers {
 public:
  // The first byte of the referenced range in this process: for shared buffers and for memory of this process
  // itself. kPeerFailed when the owner is gone or has freed the buffer. Asks the owner at the first use, so
  // this may take a millisecond.
  Result<std::byte*> Map(const BufferRef& ref, Deadline deadline);
  void DropFreed();
  size_t mappings() const { return mappings_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // process, allocation
  std::map<Key, std::shared_ptr<PeerMapping>> mappings_;
};

// Whether the system lets this process read the memory of `pid`: reads 8 bytes at `address`, which must hold
// `expected`.
bool CanReadProcess(int64_t pid, uint64_t address, uint64_t expected);

// Copies between this process and private memory of another. The range must lie in `ref`. kPeerFailed when
// the peer is gone.
Status ReadPeerMemory(const BufferRef& ref, size_t offset, void* to, size_t bytes);
Status WritePeerMemory(const BufferRef& ref, size_t offset, const void* from, size_t bytes);

}  // namespace dynamiccl
