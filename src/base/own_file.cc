// SPDX-License-Identifier: Apache-2.0
// Claiming a file is a race against other processes with the same name. The steps are: create the file
// exclusively; if it exists, open it, check its owner, lock it, check that the name still leads to it, unlink
// it, and start again. So the file in use is always one that this process created, except where unlinking is
// impossible.
#include "src/base/own_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>

#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Number of attempts. Processes that replace one file at the same time can find each other's files, and each
// such attempt is lost. Of 24,000 claims by 16 processes at a time, on two busy cores, 7 took 8 attempts or
// more, and none more than 10. So 64 lost attempts mean that the name changes all the time.
constexpr int kAttempts = 64;

tl::unexpected<Error> Unavailable(const std::string& path, const std::string& why) {
  return MakeError(ErrorKind::kUnavailable, "cannot create '{}': {}", path, why);
}

Status CheckOwn(int fd, const std::string& path) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return MakeError(ErrorKind::kUnavailable, "'{}': {}", path, ErrnoText(errno));
  if (!S_ISREG(info.st_mode)) return MakeError(ErrorKind::kUnavailable, "'{}' is not a regular file", path);
  if (info.st_uid != ::geteuid()) {
    return WithHint(
        MakeError(ErrorKind::kUnavailable, "'{}' belongs to user {}, who could read it", path, info.st_uid),
        "remove it, or name another file");
  }
  return {};
}

// A claim waits at most kWaits times 100 us while only IsClaimed of other processes holds the lock. IsClaimed
// holds the lock for the time of two system calls, but its process may lose the processor in between.
constexpr int kWaits = 100;
constexpr timespec kWait = {.tv_sec = 0, .tv_nsec = 100'000};

bool IsLockedAgainst(int fd, int operation) {
  return ::flock(fd, operation | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Returns whether another process holds the file's lock, and takes the lock otherwise. If a shared lock is
// possible, only readers (IsClaimed) hold the lock, so this waits for them: the lock of a process that
// claimed the file admits none. On a file system without locks, flock fails with another error, and each
// process then counts as the only one.
bool IsHeldByAnother(int fd) {
  for (int i = 0; IsLockedAgainst(fd, LOCK_EX); ++i) {
    if (i == kWaits || IsLockedAgainst(fd, LOCK_SH)) return true;
    ::flock(fd, LOCK_UN);
    ::nanosleep(&kWait, nullptr);
  }
  return false;
}

// Returns whether `path` still names the file that `fd` is open on: same device, same inode.
bool IsStillAt(int fd, const std::string& path) {
  struct stat open = {};
  struct stat named = {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

// A process that has closed its standard streams would get descriptor 0, 1 or 2 here, and whatever it prints
// later would end up in the file. Such a descriptor is moved to 3 or above.
Result<std::optional<OwnFile>> MovedFromStandardStreams(UniqueFd fd, const std::string& path) {
  if (fd.get() <= STDERR_FILENO) fd = UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd.valid()) return Unavailable(path, ErrnoText(errno));
  return OwnFile{std::move(fd), path};
}

// "run.ctrace" becomes "run.1234.ctrace" in process 1234.
std::string OfThisProcess(const std::filesystem::path& path) {
  std::filesystem::path stem = path;
  return fmt::format("{}.{}{}", stem.replace_extension().string(), ::getpid(), path.extension().string());
}

}  // namespace

void MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0777);
}

Result<std::optional<OwnFile>> ClaimOwnFile(const std::string& path, int flags) {
  flags |= O_CLOEXEC | O_NOFOLLOW;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600));
    const bool fresh = fd.valid();
    if (!fresh) {
      if (errno != EEXIST) return Unavailable(path, ErrnoText(errno));
      // O_NONBLOCK: opening a pipe must not wait for a reader.
      fd = UniqueFd(::open(path.c_str(), flags | O_NONBLOCK));
      if (!fd.valid() && errno == ENOENT) continue;
      if (!fd.valid()) return Unavailable(path, ErrnoText(errno));
      DYNAMICCL_CHECK_OK(CheckOwn(fd.get(), path));
    }
    if (IsHeldByAnother(fd.get())) return std::nullopt;
    if (!IsStillAt(fd.get(), path)) continue;
    // A file that cannot be removed, such as one that a container mounts by itself, is emptied instead.
    if (!fresh && ::unlink(path.c_str()) == 0) continue;
    if (!fresh && ::ftruncate(fd.get(), 0) != 0) return Unavailable(path, ErrnoText(errno));
    return MovedFromStandardStreams(std::move(fd), path);
  }
  return Unavailable(path, "other processes replace it all the time");
}

Result<OwnFile> CreateOwnFile(const std::string& path, int flags) {
  DYNAMICCL_TRY(std::optional<OwnFile> file, ClaimOwnFile(path, flags));
  if (file) return std::move(*file);
  const std::string beside = OfThisProcess(path);
  DYNAMICCL_TRY(file, ClaimOwnFile(beside, flags));
  if (!file) return Unavailable(beside, "another process holds it");
  Log(LogLevel::kWarn, "another process writes '{}'; this one writes '{}' (%r in a name stands for the rank)",
      path, beside);
  return std::move(*file);
}

bool IsClaimed(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return !fd.valid() || ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace dynamiccl
