// SPDX-License-Identifier: Apache-2.0
#include "src/base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace dynamiccl {

Result<std::string> ReadSmallFile(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[4096];
  while (file && text.size() <= most_bytes) {
    file.read(buffer, sizeof(buffer));
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  if (text.size() > most_bytes)
    return MakeError(ErrorKind::kInvalidArgument, "{}: longer than {} bytes", path, most_bytes);
  if (!file.eof()) return MakeError(ErrorKind::kNotFound, "{}: cannot be read", path);
  return text;
}

bool ReplaceFile(const std::string& path, const std::string& text) {
  const std::string beside = path + "." + std::to_string(::getpid());
  // A dead process's, or a link that another user put where its name was foreseen.
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  std::FILE* const file = fd < 0 ? nullptr : ::fdopen(fd, "w");
  if (file == nullptr) return false;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = std::fclose(file) == 0 && written;
  written = written && std::rename(beside.c_str(), path.c_str()) == 0;
  if (!written) ::unlink(beside.c_str());
  return written;
}

}  // namespace dynamiccl
