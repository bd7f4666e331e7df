// SPDX-License-Identifier: Apache-2.0
// Hands out the memfds of this process's shared buffers: a thread on an abstract unix socket, named after the
// process token, that answers processes of the same user only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// Starts the thread; once a process, and once more in a child of fork() that has buffers of its own.
Status StartDescriptorServer();

struct SharedBufferGrant {
  UniqueFd fd;
  uint64_t bytes = 0;
};

// Asks the server of the process with this token. kPeerFailed when that process is gone or has freed the
// allocation.
Result<SharedBufferGrant> RequestDescriptor(uint64_t process, uint64_t allocation, Deadline deadline);

}  // namespace dynamiccl
