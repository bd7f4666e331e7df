// SPDX-License-Identifier: Apache-2.0
#include "src/base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dynamiccl {
namespace {

Status EmptyOwn(int fd, const std::string& path) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return MakeError(ErrorKind::kUnavailable, "'{}': {}", path, ErrnoText(errno));
  if (!S_ISREG(info.st_mode)) return MakeError(ErrorKind::kUnavailable, "'{}' is not a regular file", path);
  if (info.st_uid != ::geteuid()) {
    return WithHint(
        MakeError(ErrorKind::kUnavailable, "'{}' belongs to user {}, who could read it", path, info.st_uid),
        "remove it, or name another file");
  }
  if (::ftruncate(fd, 0) != 0) return MakeError(ErrorKind::kUnavailable, "'{}': {}", path, ErrnoText(errno));
  return {};
}

}  // namespace

Result<UniqueFd> CreateOwnFile(const std::string& path, int flags) {
  flags |= O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fresh(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600));
  if (fresh.valid()) return fresh;
  // O_NONBLOCK: opening a pipe must not wait for a reader.
  UniqueFd fd(errno == EEXIST ? ::open(path.c_str(), flags | O_NONBLOCK) : -1);
  if (!fd.valid())
    return MakeError(ErrorKind::kUnavailable, "cannot create '{}': {}", path, ErrnoText(errno));
  DYNAMICCL_CHECK_OK(EmptyOwn(fd.get(), path));
  return fd;
}

}  // namespace dynamiccl
