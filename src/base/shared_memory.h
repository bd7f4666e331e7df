// SPDX-License-Identifier: Apache-2.0
// Writable mappings that several processes share: an anonymous memfd that is passed on by its descriptor, or
// a file on disk that survives the process.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/own_file.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// Creates a memfd of `bytes`, filled with zeros and sealed against resizing. `label` shows in /proc/PID/maps.
// Fails with kUnavailable.
Result<UniqueFd> CreateSealedMemory(const std::string& label, size_t bytes);

// Returns whether `fd` is a memfd of at least `bytes` that is sealed against shrinking. Only then can no peer
// make this process fail with SIGBUS by shortening it.
bool StaysAsLong(int fd, size_t bytes);

// Owns one mapping and, unless it came from ExtendFile, its descriptor; both go when it is destroyed.
// Movable, not copyable. The object itself belongs to one thread; the memory may be used by any thread and
// process, which must synchronise by themselves. Nothing is ever named in /dev/shm, so a killed job leaves no
// files behind.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Creates and maps sealed memory of `bytes`, filled with zeros.
  static Result<SharedMemory> Create(const std::string& label, size_t bytes);
  // Maps memory that a peer created; takes the descriptor. Fails with kInvalidArgument unless StaysAsLong(fd,
  // bytes).
  static Result<SharedMemory> FromFd(UniqueFd fd, size_t bytes);
  // Makes the file `bytes` long and maps it. What is stored in the file survives a SIGKILL of this process.
  // The disk space is reserved first: a full disk is an error here.
  static Result<SharedMemory> OfFile(OwnFile file, size_t bytes);
  // Lengthens the file to offset + bytes and maps that part; `offset` must be a multiple of the page size.
  // Where the kernel can do so, all pages are present on return, so that the first stores do not stop for
  // page faults. The caller keeps the descriptor.
  static Result<SharedMemory> ExtendFile(int file, size_t offset, size_t bytes);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  int fd() const { return fd_.get(); }

 private:
  static Result<SharedMemory> Map(int fd, size_t offset, size_t bytes);
  static Result<SharedMemory> MapAndKeep(UniqueFd fd, size_t bytes);
  void Unmap();

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  UniqueFd fd_;
};

}  // namespace dynamiccl
