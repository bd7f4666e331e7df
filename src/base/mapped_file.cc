// SPDX-License-Identifier: Apache-2.0
// open, fstat and mmap behind the contract of mapped_file.h. O_NONBLOCK keeps the opening of a pipe from
// waiting for a writer.
#include "src/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "src/base/unique_fd.h"

namespace dynamiccl {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat state {};
  if (!fd.valid() || ::fstat(fd.get(), &state) != 0)
    return MakeError(ErrorKind::kNotFound, "{}: {}", path, ErrnoText(errno));
  if (!S_ISREG(state.st_mode)) return MakeError(ErrorKind::kInvalidArgument, "{}: not a file", path);
  if (state.st_size == 0) return MappedFile({});
  const auto size = static_cast<size_t>(state.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED)
    return MakeError(ErrorKind::kUnavailable, "{}: cannot be mapped: {}", path, ErrnoText(errno));
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace dynamiccl
