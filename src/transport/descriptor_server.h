// SPDX-License-Identifier: Apache-2.0
// Hands out the memfds of this process's shared buffers (shared_buffer.h) to the other ranks of the host. A
// thread answers on an abstract unix socket whose name contains the process token (process_identity.h). It
// serves processes of the same user only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/transport/socket.h"

namespace dynamiccl {

// Starts the thread. Call it once per process, and again in a child of fork() that has buffers of its own.
// Returns kUnavailable when the socket or the thread cannot be made.
Status StartDescriptorServer();

// The memfd of one buffer and the size of its data in bytes.
struct SharedBufferGrant {
  UniqueFd fd;
  uint64_t bytes = 0;
};

// Asks the server of the process with this token for buffer number `allocation`. Returns kPeerFailed when
// that process is gone or has freed the buffer, kTimeout at the deadline.
Result<SharedBufferGrant> RequestDescriptor(uint64_t process, uint64_t allocation, Deadline deadline);

}  // namespace dynamiccl
