// SPDX-License-Identifier: Apache-2.0
// Decides by stat(2) what a path stands for, and words the refusal. See file_kind.h.
#include "src/base/file_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace dynamiccl {
namespace {

const char* NameOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status NotAFile(const std::string& path, const char* what) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: is {}, not a regular file", path, what),
                  "name a file");
}

Status CheckKind(const struct stat& info, const std::string& path) {
  return S_ISREG(info.st_mode) ? Status() : NotAFile(path, NameOf(info.st_mode));
}

// True if the file system has no room left for a file of this user. False for file systems without blocks,
// such as /proc.
bool IsFull(const std::string& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return false;
  const auto blocks = ::geteuid() == 0 ? info.f_bfree : info.f_bavail;
  return (info.f_blocks > 0 && blocks == 0) || (info.f_files > 0 && info.f_ffree == 0);
}

// Passes when this user can put a file into the folder. `path` is what the message names.
Status CheckTakesFiles(const std::string& folder, const std::string& path) {
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "cannot write '{}': {}", path, ErrnoText(errno)),
                    "check that the folder exists and may be written");
  if (!IsFull(folder)) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "cannot write '{}': {}", path, ErrnoText(ENOSPC)),
                  "make room on its disk, or name a file on another one");
}

}  // namespace

Status CheckIsFile(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return MakeError(ErrorKind::kUnavailable, "{}: cannot be examined", path);
  return CheckKind(info, path);
}

Status CheckIsFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 ? Status() : CheckKind(info, path);
}

Status CheckReplaceable(const std::string& path) {
  // Links such as /dev/stdout are refused whatever they lead to: renaming would replace the link itself.
  const bool of_system = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
  if (of_system && std::filesystem::is_symlink(path)) return NotAFile(path, "a link of the system");
  return CheckIsFile(path);
}

Status CheckFolderOf(const std::string& path) {
  struct stat info {};
  const bool exists = !path.empty() && ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return NotAFile(path, NameOf(info.st_mode));
  if (exists && !S_ISREG(info.st_mode)) return {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return path.empty() ? Status() : CheckTakesFiles(folder.empty() ? "." : folder, path);
}

Status CheckOutputs(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) {
    DYNAMICCL_CHECK_OK(CheckReplaceable(path));
    DYNAMICCL_CHECK_OK(CheckFolderOf(path));
  }
  return {};
}

Status CheckOutputFolder(const std::string& path) {
  if (path.empty()) return {};
  std::error_code none;
  std::filesystem::path there = std::filesystem::absolute(path, none);
  while (there.has_relative_path() && !std::filesystem::exists(there, none)) there = there.parent_path();
  if (!std::filesystem::is_directory(there, none))
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: is a file, not a folder", there.string()),
                    "name a folder");
  return CheckTakesFiles(there.string(), path);
}

Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (!std::filesystem::equivalent(output, input, none)) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "'{}' is read here, and would be overwritten", output),
        "name another file with -o");
  }
  return {};
}

Result<UniqueFd> HoldReader(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return UniqueFd();
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.valid() || errno != ENXIO) return fd;
  return WithHint(MakeError(ErrorKind::kUnavailable, "{}: is a pipe that nobody reads", path),
                  "start its reader first, or name a file");
}

}  // namespace dynamiccl
