// SPDX-License-Identifier: Apache-2.0
// memfd_create, seals, fallocate and mmap behind the contracts of shared_memory.h.
#include "src/base/shared_memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace dynamiccl {

Result<UniqueFd> CreateSealedMemory(const std::string& label, size_t bytes) {
  // The raw system call, because glibc has the wrapper only from 2.27 on and the object must load on older
  // systems.
  UniqueFd fd(static_cast<int>(::syscall(SYS_memfd_create, label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!fd.valid()) return MakeError(ErrorKind::kUnavailable, "memfd_create({}): {}", label, ErrnoText(errno));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return MakeError(ErrorKind::kUnavailable, "cannot size {} to {} bytes: {}", label, bytes,
                     ErrnoText(errno));
  }
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

bool StaysAsLong(int fd, size_t bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat info = {};
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(fd, &info) == 0 &&
         static_cast<size_t>(info.st_size) >= bytes;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::move(other.fd_)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    fd_ = std::move(other.fd_);
  }
  return *this;
}

SharedMemory::~SharedMemory() {
  Unmap();
}

void SharedMemory::Unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
}

Result<SharedMemory> SharedMemory::Map(int fd, size_t offset, size_t bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    return MakeError(ErrorKind::kUnavailable, "cannot map {} bytes of shared memory: {}", bytes,
                     ErrnoText(errno));
  }
  SharedMemory memory;
  memory.data_ = static_cast<std::byte*>(address);
  memory.size_ = bytes;
  return memory;
}

Result<SharedMemory> SharedMemory::MapAndKeep(UniqueFd fd, size_t bytes) {
  DYNAMICCL_TRY(SharedMemory memory, Map(fd.get(), 0, bytes));
  memory.fd_ = std::move(fd);
  return memory;
}

Result<SharedMemory> SharedMemory::Create(const std::string& label, size_t bytes) {
  DYNAMICCL_TRY(UniqueFd fd, CreateSealedMemory(label, bytes));
  return MapAndKeep(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::FromFd(UniqueFd fd, size_t bytes) {
  if (!StaysAsLong(fd.get(), bytes)) {
    return MakeError(ErrorKind::kInvalidArgument, "a peer's shared memory is not {} bytes that stay", bytes);
  }
  return MapAndKeep(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::OfFile(OwnFile file, size_t bytes) {
  // Reserve the space now: a full disk must be an error here, not a SIGBUS at the first store into the
  // mapping.
  const int code = ::posix_fallocate(file.fd.get(), 0, static_cast<off_t>(bytes));
  if (code != 0) {
    return MakeError(ErrorKind::kUnavailable, "cannot allocate {} bytes for '{}': {}", bytes, file.path,
                     ErrnoText(code));
  }
  return MapAndKeep(std::move(file.fd), bytes);
}

Result<SharedMemory> SharedMemory::ExtendFile(int file, size_t offset, size_t bytes) {
  const int code = ::posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (code != 0) {
    return MakeError(ErrorKind::kUnavailable, "cannot lengthen a file by {} bytes: {}", bytes,
                     ErrnoText(code));
  }
  DYNAMICCL_TRY(SharedMemory memory, Map(file, offset, bytes));
  // All pages are made present now, so that the first store into each page does not stop for a page fault.
  // Kernels before 5.14 do not know this advice; there the first stores still fault.
#ifdef MADV_POPULATE_WRITE
  ::madvise(memory.data(), bytes, MADV_POPULATE_WRITE);
#endif
  return memory;
}

}  // namespace dynamiccl
