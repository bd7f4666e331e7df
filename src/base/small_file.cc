// SPDX-License-Identifier: Apache-2.0
// Reading with an upper bound, and replacing by rename. See small_file.h.
#include "src/base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "src/base/file_kind.h"
#include "src/base/job_fail_point.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return MakeError(ErrorKind::kNotFound, "{}: cannot be read: {}", path, ErrnoText(errno));
  DYNAMICCL_CHECK_OK(CheckIsFile(fd.get(), path));
  std::string text;
  char buffer[4096];
  while (text.size() <= most_bytes) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MakeError(ErrorKind::kNotFound, "{}: cannot be read: {}", path, ErrnoText(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
  return MakeError(ErrorKind::kInvalidArgument, "{}: longer than {} bytes", path, most_bytes);
}

bool ReplaceFile(const std::string& path, const std::string& text) {
  if (!CheckReplaceable(path)) return false;
  const std::string beside = path + "." + std::to_string(::getpid());
  // A file with this name was left by a dead process of the same id, or is a link that another user planted
  // there.
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  std::FILE* const file = fd < 0 ? nullptr : ::fdopen(fd, "w");
  if (file == nullptr) return false;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = std::fclose(file) == 0 && written;
  PassJobFailPoint(JobFailPoint::kFileWritten);
  written = written && std::rename(beside.c_str(), path.c_str()) == 0;
  PassJobFailPoint(JobFailPoint::kFileRenamed);
  if (!written) ::unlink(beside.c_str());
  return written;
}

}  // namespace dynamiccl
