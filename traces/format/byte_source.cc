// SPDX-License-Identifier: Apache-2.0
// Reads with pread, so the file's position is not used. A file that becomes shorter while it is read is
// kCorrupt.
#include "traces/format/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dynamiccl {

Result<FileBytes> FileBytes::Open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0)
    return MakeError(ErrorKind::kNotFound, "cannot open '{}': {}", path, ErrnoText(errno));
  return FileBytes(std::move(file), static_cast<size_t>(status.st_size));
}

Result<std::span<const std::byte>> FileBytes::Read(size_t offset, size_t bytes) {
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  for (size_t have = 0; have < bytes;) {
    const ssize_t got =
        ::pread(file_.get(), buffer_.data() + have, bytes - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MakeError(ErrorKind::kUnavailable, "byte {}: {}", offset + have, ErrnoText(errno));
    if (got == 0) return MakeError(ErrorKind::kCorrupt, "byte {}: the file became shorter", offset + have);
    have += static_cast<size_t>(got);
  }
  return std::span<const std::byte>(buffer_.data(), bytes);
}

}  // namespace dynamiccl
