// SPDX-License-Identifier: Apache-2.0
// Closing of an owned file descriptor. See unique_fd.h.
#include "src/base/unique_fd.h"

#include <unistd.h>

namespace dynamiccl {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Reset();
    fd_ = other.Release();
  }
  return *this;
}

void UniqueFd::Reset() {
  // close is not repeated after EINTR: Linux has freed the number by then, and a second close could hit a
  // descriptor that another thread has just opened.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace dynamiccl
