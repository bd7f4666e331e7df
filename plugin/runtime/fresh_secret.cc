// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/fresh_secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/log.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {

bool FillRandomly(ControlSecret& secret) {
  // Kernels before 3.17 have no getrandom, and glibc a function for it from 2.25 on only.
  const UniqueFd source(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (source.valid() &&
      ::read(source.get(), secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()))
    return true;
  Log(LogLevel::kWarn, "ranks cannot agree: /dev/urandom cannot be read ({})", ErrnoText(errno));
  return false;
}

}  // namespace dynamiccl
