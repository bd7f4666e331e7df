// SPDX-License-Identifier: Apache-2.0
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
  // A retry after EINTR could close a descriptor that another thread has just opened (Linux frees it in any
  // case).
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace dynamiccl
