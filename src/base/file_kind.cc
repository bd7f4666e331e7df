// SPDX-License-Identifier: Apache-2.0
// Decides by stat(2) what a path stands for, and words the refusal. See file_kind.h.
#include "src/base/file_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
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
  if (path.empty() || ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "cannot write '{}': {}", path, ErrnoText(errno)),
                  "check that the folder exists and may be written");
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
