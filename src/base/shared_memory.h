// SPDX-License-Identifier: Apache-2.0
// A mapping shared between processes: an anonymous memfd handed over by descriptor, or a file on disk.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/own_file.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

// A memfd of `bytes`, zero-filled and sealed against resizing. `label` shows in /proc/PID/maps.
Result<UniqueFd> CreateSealedMemory(const std::string& label, size_t bytes);

// Whether `fd` is memory of at least `bytes` that nobody can shorten any more: whoever maps it gets no
// SIGBUS.
bool StaysAsLong(int fd, size_t bytes);

// Owns the mapping and, while it is valid, the descriptor. No name ever appears in /dev/shm, so nothing can
// be left there.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Zero-filled memory of `bytes`, sealed against resizing so that a peer cannot cause SIGBUS.
  static Result<SharedMemory> Create(const std::string& label, size_t bytes);
  // Maps what a peer created; takes the descriptor. Fails unless the object is, and stays, at least `bytes`
  // long.
  static Result<SharedMemory> FromFd(UniqueFd fd, size_t bytes);
  // Makes the file `bytes` long and maps it: what survives a SIGKILL.
  static Result<SharedMemory> OfFile(OwnFile file, size_t bytes);
  // Lengthens the file to offset + bytes and maps that part; `offset` is a multiple of the page size. All
  // pages are there when it returns, where the kernel can do that. Keeps no descriptor.
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
