// SPDX-License-Identifier: Apache-2.0
// A preloaded library that makes the n-th pread or pwrite of the process fail, as if the disk broke or were
// full. FAIL_IO=pread:7:5 makes the 7th read fail with errno 5.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool Fails(const char* function) {
  static std::atomic<int> calls = 0;
  const char* const setting = std::getenv("FAIL_IO");
  if (setting == nullptr || std::strncmp(setting, function, std::strlen(function)) != 0) return false;
  int number = 0, code = 0;
  if (std::sscanf(setting + std::strlen(function), ":%d:%d", &number, &code) != 2) return false;
  if (++calls != number) return false;
  errno = code;
  return true;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) {
  static const auto next = Next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
  return Fails("pread") ? -1 : next(fd, to, bytes, offset);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  static const auto next = Next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return Fails("pread") ? -1 : next(fd, to, bytes, offset);
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t offset) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return Fails("pwrite") ? -1 : next(fd, from, bytes, offset);
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return Fails("pwrite") ? -1 : next(fd, from, bytes, offset);
}
}
#pragma GCC visibility pop
