// SPDX-License-Identifier: Apache-2.0
// Reading and replacing whole files by the contracts of whole_file.h. The name of the temporary file carries
// the process id, so that two processes do not write into the same one.
#include "src/base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "src/base/file_kind.h"
#include "src/base/job_fail_point.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

tl::unexpected<Error> Unavailable(const std::string& path, int code) {
  return MakeError(ErrorKind::kUnavailable, "{}: {}", path, ErrnoText(code));
}

Result<UniqueFd> OpenRegular(const std::string& path, struct stat& info) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    const int code = errno;
    if (code == ELOOP) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: is a symbolic link", path),
                      "name the file itself");
    }
    return MakeError(code == ENOENT ? ErrorKind::kNotFound : ErrorKind::kUnavailable, "{}: {}", path,
                     ErrnoText(code));
  }
  if (::fstat(fd.get(), &info) != 0) return Unavailable(path, errno);
  DYNAMICCL_CHECK_OK(CheckIsFile(fd.get(), path));
  return fd;
}

Status WriteAll(int fd, const std::string& path, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unavailable(path, errno);
    done += static_cast<size_t>(written);
  }
  if (::fsync(fd) != 0) return Unavailable(path, errno);
  return {};
}

Status WriteAndSync(const std::string& path, std::span<const std::byte> bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return Unavailable(path, errno);
  return WriteAll(fd.get(), path, bytes);
}

}  // namespace

Result<WholeFile> ReadWholeFile(const std::string& path, size_t most_bytes) {
  struct stat info {};
  DYNAMICCL_TRY(const UniqueFd fd, OpenRegular(path, info));
  WholeFile file;
  const bool of_another = info.st_uid != 0 && info.st_uid != ::geteuid();
  file.others_may_write = of_another || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  file.bytes.resize(most_bytes + 1);
  size_t have = 0;
  while (have < file.bytes.size()) {
    const ssize_t got = ::read(fd.get(), file.bytes.data() + have, file.bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable(path, errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  file.bytes.resize(have);
  return file;
}

Status WriteWholeFile(const std::string& path, std::span<const std::byte> bytes) {
  DYNAMICCL_CHECK_OK(CheckReplaceable(path));
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  Status status = WriteAndSync(temporary, bytes);
  PassJobFailPoint(JobFailPoint::kStoreWritten);
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0) status = Unavailable(path, errno);
  if (status) return {};
  ::unlink(temporary.c_str());
  return WithHint(tl::unexpected<Error>(status.error()),
                  "check that the folder exists and may be written to");
}

// Reads with an upper bound on the length. See whole_file.h.
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
